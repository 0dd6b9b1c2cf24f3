// What the engine says: fixed-size records in a ring allocated once. Engine thread writes, one reader takes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "engine/request.h"

namespace engine {

enum class FinishReason : uint8_t { none, stop, length, cancelled, error };

struct TokenLogprob {
    TokenId token = -1;
    float logprob = 0.0f;
};

struct Usage {
    uint32_t prompt_tokens = 0;
    uint32_t cached_tokens = 0;      // prompt tokens taken from the prefix cache
    uint32_t completion_tokens = 0;  // of this choice
    int64_t queue_ns = 0;            // submit -> first scheduled
    int64_t prefill_ns = 0;          // first scheduled -> first token
    int64_t decode_ns = 0;           // first token -> last token
};

// One token of one choice, or its end. A token event may carry no text yet (unfinished character, possible stop
// string); text longer than an event holds comes in further events with token == -1. Concatenating all texts of a
// choice gives its answer. The last event of a choice has finish_reason != none and the usage.
struct Event {
    RequestId id = 0;
    uint32_t choice = 0;
    TokenId token = -1;                         // -1: this event has only text, or only the end
    FinishReason finish_reason = FinishReason::none;
    bool last_choice = false;                   // with finish_reason: nothing more of this request follows
    int32_t stop_index = -1;                    // finish by Request::stop[stop_index]; -1: by an end-of-generation token
    uint16_t text_bytes = 0;
    uint16_t n_top = 0;
    float logprob = 0.0f;                       // of `token`, natural log of the full softmax of the raw logits
    std::array<TokenLogprob, limits::top_logprobs> top{};
    std::array<char, limits::event_text_bytes> text{};
    Usage usage;
    std::string_view text_view() const { return {text.data(), text_bytes}; }
};

}  // namespace engine
