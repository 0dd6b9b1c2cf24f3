// `hearth run`: a chat in the terminal, or, with a prompt or a pipe, a one-shot filter. Wiring and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commands/serve.h"

namespace commands {

struct RunOptions {
    std::string prompt;             // --prompt or the words after the model; with piped input they come before it
    std::string system;             // system message
    float temperature = 0.8f;       // 0: greedy
    int32_t top_k = 40;             // 0: off
    float top_p = 0.95f;
    float min_p = 0.05f;
    std::optional<uint64_t> seed;   // absent: a different one each answer
    uint32_t max_tokens = 0;        // of one answer; 0: ServeOptions::default_max_tokens
    bool raw = false;               // the prompt goes to the model as it is, without the chat template
    bool json = false;              // one-shot: a JSON object with text, finish_reason, token counts and times
    bool no_stats = false;          // no line of tokens and times after an answer
};

// `load` gives the model and the engine's options (its server part is not used). Returns the exit code: 0,
// 1 the engine failed, 2 a bad model file or option value, 130 interrupted in one-shot form.
int run_command(const ServeOptions& load, const RunOptions& options);

}  // namespace commands
