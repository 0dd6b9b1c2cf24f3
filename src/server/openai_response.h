// Answers of /v1/chat/completions and /v1/completions as JSON: whole, and as server-sent events. Both forms are
// made from the same pieces, so the text of one equals the concatenated text of the other. No I/O; loop thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "json/writer.h"
#include "server/streams.h"
#include "text/tokenizer.h"

namespace server {

struct AnswerOptions {
    bool chat = true;  // else /v1/completions
    std::string id;    // "chatcmpl-..." or "cmpl-...": the same in every chunk
    int64_t created_unix_s = 0;
    std::string model;
    std::string fingerprint;
    uint32_t n_choices = 1;  // over all prompts
    uint32_t choices_per_prompt = 1;
    bool logprobs = false;
    bool return_tokens = false;
    bool include_usage = false;     // streams: a last chunk with usage; other chunks have "usage":null
    std::vector<std::string> echo;  // one a prompt, or empty
};

// Counts and times of a finished answer over all prompts and choices.
struct AnswerTotals {
    uint32_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
    int64_t queue_ns = 0, prefill_ns = 0, decode_ns = 0;  // the longest of the choices
    uint32_t decode_gaps = 0;                             // tokens that followed another one of their choice
};

class OpenAiAnswer {
  public:
    // `tokenizer` outlives the answer.
    OpenAiAnswer(AnswerOptions options, const text::Tokenizer& tokenizer);

    // --- streaming ---
    // The frames for these pieces: for each choice first a role chunk (chat) or the echo, then text, then one chunk
    // with finish_reason.
    std::string frames(std::span<const Piece> pieces);
    // After the last piece: the usage chunk when asked for, and [DONE].
    std::string tail() const;

    // --- whole ---
    void collect(std::span<const Piece> pieces);
    std::string whole() const;

    AnswerTotals totals() const;

  private:
    struct TokenEntry {
        engine::TokenId token = -1;
        float logprob = 0.0f;
        std::vector<engine::TokenLogprob> top;
        size_t text_offset = 0;  // characters of this choice's text before the token
    };
    struct Choice {
        bool begun = false;
        std::string text;                // whole answers only
        std::vector<TokenEntry> tokens;  // whole answers with logprobs or return_tokens only
        size_t characters = 0;           // of the tokens so far, with the echo
        engine::FinishReason finish_reason = engine::FinishReason::none;
        engine::Usage usage;
    };

    // What one piece means for its choice: its end, and, where tokens are shown, its token (else -1).
    TokenEntry note(Choice& choice, const Piece& piece);
    void begin(Choice& choice, uint32_t prompt);
    bool shows_token(const Piece& piece) const;
    std::string_view echo_of(uint32_t prompt) const;

    void append_chunk(std::string& out, std::string_view choice_json, bool last) const;
    void write_logprobs(json::Writer& w, std::span<const TokenEntry> entries) const;
    void write_tokens(json::Writer& w, std::span<const TokenEntry> entries) const;

    AnswerOptions options_;
    const text::Tokenizer& tokenizer_;
    std::string chunk_head_;  // {"id":...,"choices":[
    std::vector<Choice> choices_;
};

}  // namespace server
