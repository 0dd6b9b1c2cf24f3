// Bodies of /v1/chat/completions and /v1/completions, parsed and bounded. Pure functions of the text: what needs the
// model (token ids, context) is checked in prepare.h. Every field is in one of four tables in openai_request.cpp:
// honoured, refused unless it says nothing, harmless, or unknown; `null` equals absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "json/value.h"
#include "text/value.h"

namespace server {

// Sampling when a request doesn't say: what users of GGUF servers know. Shown in /v1/models.
struct SamplingDefaults {
    static constexpr float temperature = 0.8f;
    static constexpr int32_t top_k = 40;
    static constexpr float top_p = 0.95f;
    static constexpr float min_p = 0.05f;
};

// What both endpoints share.
struct GenerationRequest {
    std::string model;                   // any is accepted while one is served
    engine::SamplingParams sampling;     // ids of logit_bias are not yet checked against the vocabulary; seed unset
    std::optional<uint64_t> seed;        // absent: the server draws one
    std::vector<std::string> stop;       // non-empty strings, at most limits::stop_strings_count
    std::optional<uint32_t> max_tokens;  // >= 1; absent: what the context leaves, up to the server's default
    uint32_t min_tokens = 0;
    bool ignore_eos = false;
    bool cache_prompt = true;
    uint32_t n_choices = 1;
    bool logprobs = false;
    uint32_t top_logprobs = 0;
    bool stream = false;
    bool include_usage = false;        // a last chunk with usage
    bool return_tokens = false;        // token ids beside the text
    std::vector<std::string> ignored;  // unknown fields, in order: listed in x-hearth-ignored
};

struct ChatRequest : GenerationRequest {
    // Objects {role, content, and what the message had of name, tool_calls, tool_call_id, reasoning_content}; content
    // is always a string; role "developer" has become "system". At least one.
    text::ValueArray messages;
    bool add_generation_prompt = true;
    // The last message is an assistant's and the answer goes on where it ends (its text is not repeated).
    bool continue_final_message = false;
    text::ValueObject template_kwargs;  // chat_template_kwargs; names checked in prepare
};

struct Prompt {
    std::string text;
    std::vector<engine::TokenId> tokens;  // used instead of the text when is_tokens
    bool is_tokens = false;
};

struct CompletionRequest : GenerationRequest {
    std::vector<Prompt> prompts;  // 1 to limits::prompts_count
    bool echo = false;            // the prompt's text comes before the answer
    bool parse_special = false;   // texts of control tokens in the prompt become these tokens
};

base::Result<ChatRequest> parse_chat_request(std::string_view body);
base::Result<CompletionRequest> parse_completion_request(std::string_view body);

// The part of a chat request that /apply-template and /tokenize share: messages and how to render them.
base::Result<ChatRequest> parse_messages_only(const json::Value& body);
// The body as an object; anything else is an error.
base::Result<json::Value> parse_body(std::string_view body);

// `messages` of a body; null when absent.
base::Result<text::ValueArray> parse_messages(const json::Value* value);

// JSON's values as the template's (integers above INT64_MAX become doubles). Depth is bounded by json::parse.
text::Value to_template_value(const json::Value& value);

}  // namespace server
