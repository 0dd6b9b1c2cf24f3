#include "server/prepare.h"

#include <algorithm>
#include <array>

#include "base/message.h"
#include "json/writer.h"
#include "server/openai.h"
#include "server/openai_fields.h"
#include "server/request_fields.h"
#include "text/detokenizer.h"

namespace server {
namespace {

using base::Result;
using engine::TokenId;

// What the server itself gives the template; an argument of the same name would replace it.
constexpr std::array<std::string_view, 7> reserved_variables = {
    "messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token", "continue_final_message"};

bool is_word_character(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether `word` stands somewhere in the source as a name of its own.
bool mentions(std::string_view source, std::string_view word) {
    if (word.empty()) return false;
    for (size_t at = source.find(word); at != std::string_view::npos; at = source.find(word, at + 1)) {
        const bool begins = at == 0 || !is_word_character(source[at - 1]);
        const size_t end = at + word.size();
        if (begins && (end == source.size() || !is_word_character(source[end]))) return true;
    }
    return false;
}

base::Error context_error(std::string_view field, uint32_t context, uint64_t prompt_tokens, std::optional<uint32_t> max_tokens) {
    const std::string what(field);  // "messages" or "prompt"
    std::string message = "This model's maximum context length is " + std::to_string(context) + " tokens. However, ";
    if (prompt_tokens >= context || !max_tokens)
        message +=
            "your " + what + " resulted in " + std::to_string(prompt_tokens) + " tokens. Please reduce the length of the " + what + ".";
    else
        message += "you requested " + std::to_string(prompt_tokens + *max_tokens) + " tokens (" + std::to_string(prompt_tokens) +
                   " in the " + what + ", " + std::to_string(*max_tokens) + " in the completion). Please reduce the length of the " + what +
                   " or completion.";
    return {base::ErrorCode::context_length_exceeded, std::move(message), what};
}

// Everything but the tokens; `field` names where they came from.
Result<engine::Request> to_engine_request(const GenerationRequest& in, std::vector<TokenId> tokens, const ServedModel& model,
                                          std::string_view field, uint64_t fallback_seed) {
    const uint64_t prompt_tokens = tokens.size();
    if (prompt_tokens == 0) return invalid(std::string(field), std::string(field) + " has no tokens");
    // At least one token must fit behind the prompt.
    if (prompt_tokens >= model.context_length || (in.max_tokens && prompt_tokens + *in.max_tokens > model.context_length))
        return context_error(field, model.context_length, prompt_tokens, in.max_tokens);
    const auto left = static_cast<uint32_t>(model.context_length - prompt_tokens);

    engine::Request out;
    out.tokens = std::move(tokens);
    out.sampling = in.sampling;
    out.sampling.seed = in.seed.value_or(fallback_seed);
    for (const auto& [id, bias] : out.sampling.logit_bias)
        if (static_cast<uint32_t>(id) >= model.n_vocab)
            return invalid("logit_bias",
                           "logit_bias names token " + std::to_string(id) + ", the vocabulary has " + std::to_string(model.n_vocab));
    out.stop = in.stop;
    out.max_tokens = in.max_tokens.value_or(std::min(left, model.default_max_tokens));
    out.min_tokens = in.min_tokens;
    if (in.min_tokens > out.max_tokens)
        return invalid("min_tokens", "min_tokens " + std::to_string(in.min_tokens) + " is above the " + std::to_string(out.max_tokens) +
                                         " tokens the answer may have");
    out.ignore_eos = in.ignore_eos;
    out.cache_prompt = in.cache_prompt;
    out.n_choices = in.n_choices;
    out.logprobs = in.logprobs;
    out.top_logprobs = in.top_logprobs;
    return out;
}

Result<std::vector<TokenId>> check_ids(std::string_view field, const std::vector<TokenId>& ids, const ServedModel& model) {
    for (size_t i = 0; i < ids.size(); ++i)
        if (static_cast<uint32_t>(ids[i]) >= model.n_vocab)
            return invalid(element_field(field, i), element_field(field, i) + " is token " + std::to_string(ids[i]) +
                                                        ", the vocabulary has " + std::to_string(model.n_vocab));
    return ids;
}

std::string text_of_tokens(const text::Tokenizer& tokenizer, std::span<const TokenId> tokens) {
    std::string out;
    text::Detokenizer detokenizer;
    const auto append = [&](std::string_view text) { out += text; };
    // A text begins at the front and behind each token that stands for itself: there SentencePiece had put a space.
    bool begins = true;
    for (const TokenId token : tokens) {
        detokenizer.push(begins ? tokenizer.leading_bytes(token) : tokenizer.token_bytes(token), append);
        const text::TokenKind kind = tokenizer.token_kind(token);
        begins = kind == text::TokenKind::control || kind == text::TokenKind::user_defined;
    }
    detokenizer.finish(append);
    return out;
}

}  // namespace

Result<std::vector<text::Segment>> render_chat(const ChatRequest& request, const ServedModel& model, const base::Clock& clock,
                                               std::vector<std::string>& ignored) {
    if (!model.chat_template) return unsupported("messages", "this model has no chat template: use /v1/completions");
    const bool prefill = request.continue_final_message;
    text::ValueArray messages(request.messages.begin(), request.messages.end() - (prefill ? 1 : 0));

    text::ValueObject variables;
    variables.emplace_back("messages", std::move(messages));
    variables.emplace_back("tools", nullptr);
    variables.emplace_back("documents", nullptr);
    variables.emplace_back("add_generation_prompt", prefill || request.add_generation_prompt);
    variables.emplace_back("bos_token", model.bos_token);
    variables.emplace_back("eos_token", model.eos_token);
    for (const auto& [name, value] : request.template_kwargs) {
        const std::string field = "chat_template_kwargs." + name;
        if (std::find(reserved_variables.begin(), reserved_variables.end(), name) != reserved_variables.end())
            return invalid(field, field + " is set by the server and cannot be given");
        if (mentions(model.chat_template->source(), name))
            variables.emplace_back(name, value);
        else
            ignored.push_back(field);
    }
    static constexpr std::array<std::string_view, 2> trusted = {"bos_token", "eos_token"};
    Result<std::vector<text::Segment>> segments = model.chat_template->render(variables, trusted, clock);
    if (!segments) {
        base::Error error = segments.take_error();
        if (error.field.empty()) error.field = "messages";
        // A limit of the rendering (steps, time, output), not of the body: a smaller body is no promise, so no 413.
        if (error.code == base::ErrorCode::too_large) error.code = base::ErrorCode::invalid_argument;
        return error;
    }
    if (prefill) {
        const auto& last = std::get<text::ValueObject>(request.messages.back().data);
        segments.value().push_back({std::get<std::string>(last[1].second.data), false});
    }
    return segments;
}

Result<Prepared> prepare(const ChatRequest& request, const ServedModel& model, uint64_t fallback_seed, const base::Clock& clock) {
    Prepared out;
    Result<std::vector<text::Segment>> segments = render_chat(request, model, clock, out.ignored);
    if (!segments) return segments.take_error();
    std::vector<TokenId> tokens;
    model.tokenizer->encode(segments.value(), true, tokens);
    Result<engine::Request> built = to_engine_request(request, std::move(tokens), model, "messages", fallback_seed);
    if (!built) return built.take_error();
    out.requests.push_back(std::move(built).value());
    return out;
}

Result<Prepared> prepare(const CompletionRequest& request, const ServedModel& model, uint64_t fallback_seed) {
    Prepared out;
    for (size_t i = 0; i < request.prompts.size(); ++i) {
        const Prompt& prompt = request.prompts[i];
        const std::string field = request.prompts.size() == 1 ? "prompt" : element_field("prompt", i);
        std::vector<TokenId> tokens;
        if (prompt.is_tokens) {
            Result<std::vector<TokenId>> checked = check_ids(field, prompt.tokens, model);
            if (!checked) return checked.take_error();
            tokens = std::move(checked).value();
        } else {
            const text::Segment segment{prompt.text, request.parse_special};
            model.tokenizer->encode(std::span(&segment, 1), true, tokens);
        }
        if (request.echo) out.echo.push_back(prompt.is_tokens ? text_of_tokens(*model.tokenizer, tokens) : prompt.text);
        Result<engine::Request> built = to_engine_request(request, std::move(tokens), model, field, fallback_seed);
        if (!built) return built.take_error();
        out.requests.push_back(std::move(built).value());
    }
    return out;
}

// {"content": text} as llama.cpp has it, {"prompt": text} or {"messages": [...]} as vLLM does.
Result<std::string> tokenize_answer(const json::Value& body, const ServedModel& model, const base::Clock& clock) {
    bool add_special = false, parse_special = false, with_pieces = false;
    for (const auto& [name, target] :
         {std::pair{"add_special", &add_special}, {"parse_special", &parse_special}, {"with_pieces", &with_pieces}}) {
        if (!present(body, name)) continue;
        Result<bool> read = read_bool(name, *body.find(name));
        if (!read) return read.take_error();
        *target = read.value();
    }
    std::vector<text::Segment> segments;
    if (present(body, "messages")) {
        Result<ChatRequest> chat = parse_messages_only(body);
        if (!chat) return chat.take_error();
        std::vector<std::string> ignored;
        Result<std::vector<text::Segment>> rendered = render_chat(chat.value(), model, clock, ignored);
        if (!rendered) return rendered.take_error();
        segments = std::move(rendered).value();
        if (!present(body, "add_special")) add_special = true;  // what /v1/chat/completions does
    } else {
        const std::string_view field = present(body, "content") ? "content" : "prompt";
        if (!present(body, field)) return invalid("content", "content is required");
        Result<std::string> text = read_string(field, *body.find(field));
        if (!text) return text.take_error();
        segments.push_back({std::move(text).value(), parse_special});
    }
    std::vector<TokenId> tokens;
    model.tokenizer->encode(segments, add_special, tokens);

    std::string out;
    json::Writer w(out);
    w.begin_object().key("tokens").begin_array();
    for (const TokenId token : tokens) {
        if (out.size() > limits::tokenize_answer_bytes)
            return base::Error{base::ErrorCode::too_large,
                               base::cat("the answer for ", tokens.size(), " tokens is over ", limits::tokenize_answer_bytes,
                                         " bytes; send shorter text", with_pieces ? ", or leave out with_pieces" : ""),
                               with_pieces ? "with_pieces" : "content"};
        if (!with_pieces) {
            w.value(token);
            continue;
        }
        const std::string_view bytes = model.tokenizer->token_bytes(token);
        w.begin_object().member("id", token).member("piece", bytes).key("bytes").begin_array();
        for (const char byte : bytes) w.value(static_cast<int>(static_cast<unsigned char>(byte)));
        w.end_array().end_object();
    }
    w.end_array().member("count", uint64_t{tokens.size()}).member("max_model_len", model.context_length).end_object();
    return out;
}

Result<std::string> detokenize_answer(const json::Value& body, const ServedModel& model) {
    if (!present(body, "tokens")) return invalid("tokens", "tokens is required");
    const json::Array* list = body.find("tokens")->as_array();
    if (!list) return must_be("tokens", "an array of token ids", *body.find("tokens"));
    std::vector<TokenId> tokens;
    tokens.reserve(list->size());
    for (size_t i = 0; i < list->size(); ++i) {
        Result<int64_t> id = read_int(element_field("tokens", i), (*list)[i], 0, int64_t{model.n_vocab} - 1);
        if (!id) return id.take_error();
        tokens.push_back(static_cast<TokenId>(id.value()));
    }
    std::string out;
    json::Writer(out).begin_object().member("content", text_of_tokens(*model.tokenizer, tokens)).end_object();
    return out;
}

Result<std::string> apply_template_answer(const json::Value& body, const ServedModel& model, const base::Clock& clock) {
    Result<ChatRequest> chat = parse_messages_only(body);
    if (!chat) return chat.take_error();
    std::vector<std::string> ignored;
    Result<std::vector<text::Segment>> segments = render_chat(chat.value(), model, clock, ignored);
    if (!segments) return segments.take_error();
    std::string out;
    json::Writer(out).begin_object().member("prompt", text::to_string(segments.value())).end_object();
    return out;
}

}  // namespace server
