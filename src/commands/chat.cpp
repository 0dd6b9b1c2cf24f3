#include "commands/chat.h"

#include <algorithm>
#include <array>

#include "base/mix.h"

namespace commands {

using base::Error;
using base::ErrorCode;
using base::Result;
using text::Value;
using text::ValueObject;

namespace {

Value message(const char* role, std::string content) { return ValueObject{{"role", role}, {"content", std::move(content)}}; }

std::string special_text(const text::Tokenizer& tokenizer, text::TokenId id) {
    return id < 0 ? std::string() : std::string(tokenizer.token_bytes(id));
}

}  // namespace

double Answer::tokens_per_second() const {
    if (usage.completion_tokens < 2 || usage.decode_ns <= 0) return 0;
    return (usage.completion_tokens - 1) * 1e9 / static_cast<double>(usage.decode_ns);
}

Chat::Chat(engine::Engine& engine, const text::Tokenizer& tokenizer, const text::ChatTemplate* chat_template, const base::Clock& clock,
           const RunOptions& options, uint32_t context_length, uint32_t default_max_tokens)
    : engine_(engine), tokenizer_(tokenizer), chat_template_(chat_template), clock_(clock), options_(options), context_length_(context_length),
      default_max_tokens_(default_max_tokens) {
    clear();
}

void Chat::clear() {
    messages_.clear();
    if (!options_.system.empty()) messages_.push_back(message("system", options_.system));
}

void Chat::set_system(std::string text) {
    options_.system = std::move(text);
    clear();
}

Result<std::vector<text::TokenId>> Chat::tokens_of(const std::string& prompt) const {
    std::vector<text::TokenId> tokens;
    if (options_.raw) {
        const std::array segments{text::Segment{prompt, false}};
        tokenizer_.encode(segments, true, tokens);
        return tokens;
    }
    if (!chat_template_)
        return Error{ErrorCode::unsupported, "the model file has no chat template (tokenizer.chat_template); --raw gives it the prompt as it is", {}};
    text::ValueArray messages = messages_;
    messages.push_back(message("user", prompt));
    const ValueObject variables{{"messages", std::move(messages)},
                                {"add_generation_prompt", true},
                                {"bos_token", special_text(tokenizer_, tokenizer_.bos_id())},
                                {"eos_token", special_text(tokenizer_, tokenizer_.eos_id())}};
    constexpr std::array<std::string_view, 2> trusted{"bos_token", "eos_token"};
    auto segments = chat_template_->render(variables, trusted, clock_);
    if (!segments) return segments.take_error();
    tokenizer_.encode(segments.value(), true, tokens);
    return tokens;
}

Result<Answer> Chat::turn(const std::string& prompt, const std::function<void(std::string_view)>& sink, const std::atomic<bool>& stop) {
    const int64_t start_ns = clock_.now_ns();
    auto tokens = tokens_of(prompt);
    if (!tokens) return tokens.take_error();
    const auto prompt_tokens = static_cast<uint32_t>(tokens.value().size());
    if (prompt_tokens == 0) return Error{ErrorCode::invalid_argument, "the prompt is empty", {}};
    if (prompt_tokens >= context_length_)
        return Error{ErrorCode::context_length_exceeded,
                     "the conversation has " + std::to_string(prompt_tokens) + " tokens, the context holds " + std::to_string(context_length_), {}};

    engine::Request request;
    request.id = next_id_++;
    request.tokens = std::move(tokens).value();
    request.sampling.temperature = options_.temperature;
    request.sampling.top_k = options_.top_k;
    request.sampling.top_p = options_.top_p;
    request.sampling.min_p = options_.min_p;
    request.sampling.seed = options_.seed ? *options_.seed : static_cast<uint64_t>(start_ns) * base::golden_gamma;
    request.max_tokens = std::min(options_.max_tokens ? options_.max_tokens : default_max_tokens_, context_length_ - prompt_tokens);
    request.arrival_ns = start_ns;
    const bool up_to_the_end = request.max_tokens == context_length_ - prompt_tokens;
    const engine::RequestId id = request.id;
    if (auto accepted = engine_.submit(std::move(request)); !accepted) return accepted.take_error();

    Answer answer;
    bool cancelled = false;
    engine::Event event;
    while (answer.finish_reason == engine::FinishReason::none) {
        if (stop && !cancelled) {
            engine_.cancel(id);
            cancelled = true;
        }
        engine_.step();
        while (engine_.pop_event(event)) {
            if (event.id != id) continue;
            if (event.token >= 0 && answer.first_token_ns == 0) answer.first_token_ns = clock_.now_ns() - start_ns;
            if (event.text_bytes > 0) {
                answer.text += event.text_view();
                sink(event.text_view());
            }
            if (event.finish_reason != engine::FinishReason::none) {
                answer.finish_reason = event.finish_reason;
                answer.usage = event.usage;
            }
        }
    }
    answer.context_full = up_to_the_end && answer.finish_reason == engine::FinishReason::length;
    if (answer.finish_reason == engine::FinishReason::error)
        return Error{ErrorCode::internal, "the model's logits were not finite; the answer was ended", {}};
    if (!options_.raw) {
        messages_.push_back(message("user", prompt));
        messages_.push_back(message("assistant", answer.text));
    }
    return answer;
}

}  // namespace commands
