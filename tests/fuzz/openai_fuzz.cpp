// Bodies of the two generation endpoints: whatever comes in, what is accepted is inside the engine's ranges.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/limits.h"
#include "server/openai_request.h"

namespace {

void check(const server::GenerationRequest& r) {
    const engine::SamplingParams& s = r.sampling;
    CHECK(s.temperature >= 0 && s.temperature <= 100);
    CHECK(s.top_k >= 0);
    CHECK(s.top_p > 0 && s.top_p <= 1);
    CHECK(s.min_p >= 0 && s.min_p < 1);
    CHECK(s.typical_p > 0 && s.typical_p <= 1);
    CHECK(s.repetition_penalty > 0 && s.repetition_penalty <= 10);
    CHECK(s.presence_penalty >= -2 && s.presence_penalty <= 2);
    CHECK(s.frequency_penalty >= -2 && s.frequency_penalty <= 2);
    CHECK_LE(s.logit_bias.size(), limits::logit_bias_entries);
    for (const auto& [id, bias] : s.logit_bias) CHECK(id >= 0 && bias >= -100 && bias <= 100);
    CHECK_LE(r.stop.size(), limits::stop_strings_count);
    for (const std::string& stop : r.stop) CHECK(!stop.empty() && stop.size() <= limits::stop_string_bytes);
    CHECK(!r.max_tokens || *r.max_tokens >= 1);
    CHECK(r.n_choices >= 1 && r.n_choices <= limits::choices_count);
    CHECK_LE(r.top_logprobs, limits::top_logprobs);
    CHECK(r.logprobs || r.top_logprobs == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    if (const auto chat = server::parse_chat_request(body); chat.ok()) {
        check(chat.value());
        CHECK(!chat.value().messages.empty() && chat.value().messages.size() <= limits::messages_count);
    } else {
        CHECK(!chat.error().message.empty());
    }
    if (const auto completion = server::parse_completion_request(body); completion.ok()) {
        check(completion.value());
        CHECK(!completion.value().prompts.empty() && completion.value().prompts.size() * completion.value().n_choices <= limits::prompts_count);
        for (const server::Prompt& prompt : completion.value().prompts) CHECK(!prompt.is_tokens || !prompt.tokens.empty());
    } else {
        CHECK(!completion.error().message.empty());
    }
    return 0;
}
