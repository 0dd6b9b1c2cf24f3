// Engine::submit: everything about a request that is decided on the caller's thread.
#include <algorithm>
#include <cmath>
#include <new>

#include "base/utf8.h"
#include "engine/engine_impl.h"

namespace engine {

namespace {

base::Error invalid(std::string field, std::string message) {
    return {base::ErrorCode::invalid_argument, std::move(message), std::move(field)};
}

bool in_range(float value, float low, float high) { return value >= low && value <= high; }  // false for NaN

// server/openai has already refused what a client may get wrong; this guards the engine against its callers.
base::Result<void> check_sampling(const SamplingParams& p, uint32_t n_vocab) {
    const auto outside = [](const char* field, const char* allowed) {
        return invalid(field, std::string(field) + " is outside " + allowed);
    };
    if (!in_range(p.temperature, 0.0f, 100.0f)) return outside("temperature", "[0, 100]");
    if (p.top_k < 0) return outside("top_k", "[0, 2^31)");
    if (!in_range(p.top_p, 0.0f, 1.0f) || p.top_p == 0.0f) return outside("top_p", "(0, 1]");
    if (!in_range(p.min_p, 0.0f, 1.0f) || p.min_p == 1.0f) return outside("min_p", "[0, 1)");
    if (!in_range(p.typical_p, 0.0f, 1.0f) || p.typical_p == 0.0f) return outside("typical_p", "(0, 1]");
    if (!in_range(p.repetition_penalty, 0.0f, 10.0f) || p.repetition_penalty == 0.0f) return outside("repetition_penalty", "(0, 10]");
    if (!in_range(p.presence_penalty, -2.0f, 2.0f)) return outside("presence_penalty", "[-2, 2]");
    if (!in_range(p.frequency_penalty, -2.0f, 2.0f)) return outside("frequency_penalty", "[-2, 2]");
    if (p.repetition_last_n < -1) return outside("repetition_last_n", "[-1, 2^31)");
    if (p.logit_bias.size() > limits::logit_bias_entries) return invalid("logit_bias", "logit_bias has too many entries");
    for (const auto& [token, bias] : p.logit_bias) {
        if (token < 0 || static_cast<uint32_t>(token) >= n_vocab) {
            return invalid("logit_bias", "logit_bias names token " + std::to_string(token) + ", the vocabulary has [0, " + std::to_string(n_vocab) + ")");
        }
        if (!in_range(bias, -100.0f, 100.0f)) return outside("logit_bias", "[-100, 100]");
    }
    return {};
}

// In OpenAI's words, which clients look for.
base::Error too_long(const char* what, uint64_t n_max, uint64_t n_prompt, uint64_t n_answer) {
    return {base::ErrorCode::context_length_exceeded,
            std::string(what) + " is " + std::to_string(n_max) + " tokens. However, you requested " + std::to_string(n_prompt + n_answer) + " tokens (" +
                std::to_string(n_prompt) + " in the messages, " + std::to_string(n_answer) +
                " in the completion). Please reduce the length of the messages or completion.",
            "messages"};
}

// Positions that are ever computed: the last token of an answer is not.
uint64_t positions(uint64_t n_prompt, uint64_t max_tokens) { return n_prompt + max_tokens - 1; }

bool counts_tokens(const SamplingParams& p) { return p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f; }

// What make_state() will allocate that grows with prompt and answer; the rest is a few KiB.
size_t state_bytes(const Request& request, uint32_t n_vocab) {
    const size_t n_tokens = request.tokens.size() + size_t{request.max_tokens};
    size_t bytes = n_tokens * sizeof(TokenId) + blocks_for(n_tokens) * sizeof(BlockIndex);
    if (counts_tokens(request.sampling)) bytes += TokenCounts::bytes_for(std::min<size_t>(n_tokens, n_vocab));
    return sizeof(RequestState) + (sizeof(Sequence) + bytes) * request.n_choices;
}

}  // namespace

base::Result<void> EngineImpl::check_request(const Request& request) const {
    const uint32_t n_vocab = model_.n_vocab();
    if (request.tokens.empty()) return invalid("messages", "the prompt has no tokens");
    if (request.max_tokens == 0) return invalid("max_tokens", "max_tokens is 0, at least 1 is needed");
    const uint64_t n_prompt = request.tokens.size();
    if (n_prompt + request.max_tokens > config_.context_length) {
        return too_long("This model's maximum context length", config_.context_length, n_prompt, request.max_tokens);
    }
    if (request.n_choices == 0 || request.n_choices > std::min(limits::choices_count, config_.sequences_max)) {
        return invalid("n", "n is " + std::to_string(request.n_choices) + ", allowed is 1 to " +
                                std::to_string(std::min(limits::choices_count, config_.sequences_max)));
    }
    const uint64_t shared = n_prompt / block_tokens;
    const uint64_t blocks = blocks_for(positions(n_prompt, request.max_tokens));
    if (blocks + (blocks - shared) * (request.n_choices - 1) > ring_.total()) {
        const uint64_t budget = uint64_t{ring_.total()} * block_tokens;
        if (request.n_choices == 1) return too_long("This server's KV budget", budget, n_prompt, request.max_tokens);
        base::Error error = too_long("This server's KV budget", budget, n_prompt, uint64_t{request.max_tokens} * request.n_choices);
        error.message += " The completion counts n = " + std::to_string(request.n_choices) + " choices, each in whole blocks of " +
                         std::to_string(block_tokens) + " tokens.";
        return error;
    }
    const auto bad_token = std::ranges::find_if(request.tokens, [&](TokenId t) { return t < 0 || static_cast<uint32_t>(t) >= n_vocab; });
    if (bad_token != request.tokens.end()) {
        return invalid("prompt", "token " + std::to_string(*bad_token) + " at position " + std::to_string(bad_token - request.tokens.begin()) +
                                     " is outside the vocabulary [0, " + std::to_string(n_vocab) + ")");
    }
    if (request.stop.size() > limits::stop_strings_count) {
        return invalid("stop", "stop has " + std::to_string(request.stop.size()) + " strings, at most " + std::to_string(limits::stop_strings_count));
    }
    for (size_t i = 0; i < request.stop.size(); ++i) {
        const std::string& s = request.stop[i];
        if (s.empty() || s.size() > limits::stop_string_bytes || !base::utf8::is_valid(s)) {
            return invalid("stop", "stop[" + std::to_string(i) + "] must be UTF-8 of 1 to " + std::to_string(limits::stop_string_bytes) + " bytes");
        }
    }
    if (request.top_logprobs > limits::top_logprobs) {
        return invalid("top_logprobs", "top_logprobs is at most " + std::to_string(limits::top_logprobs));
    }
    return check_sampling(request.sampling, n_vocab);
}

std::unique_ptr<RequestState> EngineImpl::make_state(Request request) const {
    auto state = std::make_unique<RequestState>();
    RequestState& r = *state;
    r.n_prompt = static_cast<uint32_t>(request.tokens.size());
    r.stops = StopStrings(std::move(request.stop));
    const size_t n_tokens = r.n_prompt + size_t{request.max_tokens};
    r.blocks_first = blocks_for(positions(r.n_prompt, request.max_tokens));
    r.blocks_further = r.blocks_first - r.n_prompt / block_tokens;
    const SamplingParams& p = request.sampling;
    const bool repeats = counts_tokens(p);
    r.choices.resize(request.n_choices);
    for (Sequence& sequence : r.choices) {
        sequence.request = state.get();
        sequence.choice = static_cast<uint32_t>(&sequence - r.choices.data());
        sequence.n_prompt = r.n_prompt;
        sequence.tokens.reserve(n_tokens);
        sequence.tokens = request.tokens;
        sequence.block_table.reserve(r.blocks_first);
        if (repeats) {
            sequence.counts = TokenCounts(std::min<size_t>(n_tokens, model_.n_vocab()), p.repetition_last_n);
            for (size_t i = 1; i <= request.tokens.size(); ++i) sequence.counts.add({request.tokens.data(), i}, false);
        }
    }
    request.tokens = {};
    r.submitted_ns = clock_.now_ns();
    if (request.arrival_ns == 0) request.arrival_ns = r.submitted_ns;
    r.request = std::move(request);
    return state;
}

base::Result<void> EngineImpl::submit(Request request) {
    if (draining_.load(std::memory_order_relaxed)) {
        metrics_.refused_draining.fetch_add(1, std::memory_order_relaxed);
        return base::Error{base::ErrorCode::unavailable, "the server is shutting down and takes no new requests", ""};
    }
    if (base::Result<void> checked = check_request(request); !checked) {
        if (checked.error().code == base::ErrorCode::context_length_exceeded) metrics_.refused_context.fetch_add(1, std::memory_order_relaxed);
        return checked;
    }
    const auto queue_full = [&](const std::string& why) {
        metrics_.refused_queue_full.fetch_add(1, std::memory_order_relaxed);
        return base::Error{base::ErrorCode::queue_full, "the queue is full: " + why + "; try again in " + std::to_string(retry_after_s()) + " s", ""};
    };
    const size_t bytes = state_bytes(request, model_.n_vocab());
    if (!inbox_.hold(bytes)) return queue_full("the requests in progress hold as much working memory as they may");
    std::unique_ptr<RequestState> state;
    try {
        state = make_state(std::move(request));
    } catch (const std::bad_alloc&) {
        inbox_.release(bytes);
        return base::Error{base::ErrorCode::unavailable, "no memory for this request", ""};
    }
    state->held_bytes = bytes;
    switch (inbox_.push(std::move(state))) {
        case Inbox::Push::accepted: return {};
        case Inbox::Push::duplicate: return base::Error{base::ErrorCode::internal, "a request with this id is in progress", ""};
        case Inbox::Push::full: return queue_full(std::to_string(config_.queue_requests_max) + " requests are waiting");
        case Inbox::Push::crowded: break;
    }
    return queue_full("as many requests as may are in progress or waiting");
}

}  // namespace engine
