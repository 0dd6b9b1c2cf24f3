// One conversation with an engine that lives in this thread: a turn renders the template, submits, steps the engine and
// prints the text as it comes. Used by `hearth run`.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "commands/run.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace commands {

struct Answer {
    std::string text;
    engine::FinishReason finish_reason = engine::FinishReason::none;
    engine::Usage usage;
    bool context_full = false;   // ended because the context holds no more
    int64_t first_token_ns = 0;  // from the start of the turn
    double tokens_per_second() const;  // decode only; 0 with fewer than two tokens
};

class Chat {
  public:
    // References outlive the chat. chat_template may be null: then only raw prompts work.
    Chat(engine::Engine& engine, const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template, const base::Clock& clock,
         const RunOptions& options, uint32_t context_length, uint32_t default_max_tokens);

    // Answers `prompt` as the next turn; `sink` gets the text in whole characters. Setting *stop cancels the answer within
    // a step; what was said stays in the conversation. On an error nothing was added.
    base::Result<Answer> turn(const std::string& prompt, const std::function<void(std::string_view)>& sink, const std::atomic<bool>& stop);
    void clear();                              // forgets the conversation, keeps the system message
    void set_system(std::string text);         // and forgets the conversation

  private:
    base::Result<std::vector<text::TokenId>> tokens_of(const std::string& prompt) const;

    engine::Engine& engine_;
    const text::Tokenizer& tokenizer_;
    const text::ChatTemplate* chat_template_;
    const base::Clock& clock_;
    RunOptions options_;
    uint32_t context_length_, default_max_tokens_;
    text::ValueArray messages_;
    engine::RequestId next_id_ = 1;
};

}  // namespace commands
