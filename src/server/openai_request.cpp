#include "server/openai_request.h"

#include "base/limits.h"
#include "json/parse.h"
#include "server/openai.h"
#include "server/openai_fields.h"
#include "server/request_fields.h"

namespace server {
namespace {

using base::Result;
using json::Value;

bool is_word(const Value* value, std::string_view word) { return value && value->as_string() && *value->as_string() == word; }

// Tool calls are not built: a list of tools is accepted only with a choice of "none".
Result<void> check_tools(const Value& body, std::string_view list_name, std::string_view choice_name) {
    const Value* list = body.find(list_name);
    const Value* choice = body.find(choice_name);
    const bool has_tools = list && !says_nothing(*list) && !list->is_null();
    if (has_tools && !list->as_array()) return must_be(list_name, "an array", *list);
    if (has_tools && !is_word(choice, "none"))
        return unsupported(std::string(list_name), std::string(list_name) + " is not supported; send " + std::string(choice_name) +
                                                       ": \"none\" to have it ignored");
    if (!has_tools && choice && !choice->is_null() && !is_word(choice, "none") && !is_word(choice, "auto"))
        return invalid(std::string(choice_name),
                       std::string(choice_name) + " " + shown(*choice) + " needs a non-empty " + std::string(list_name));
    return {};
}

Result<void> read_chat_logprobs(ChatRequest& out, const Value& body) {
    if (present(body, "logprobs")) {
        Result<bool> read = read_bool("logprobs", *body.find("logprobs"));
        if (!read) return read.take_error();
        out.logprobs = read.value();
    }
    if (!present(body, "top_logprobs")) return {};
    Result<int64_t> top = read_int("top_logprobs", *body.find("top_logprobs"), 0, limits::top_logprobs);
    if (!top) return top.take_error();
    if (top.value() > 0 && !out.logprobs) return invalid("top_logprobs", "top_logprobs needs logprobs: true");
    out.top_logprobs = static_cast<uint32_t>(top.value());
    return {};
}

bool last_is_assistant(const text::ValueArray& messages) {
    const auto& last = std::get<text::ValueObject>(messages.back().data);
    return std::get<std::string>(last[0].second.data) == "assistant";
}

// How the conversation is handed to the template: an open assistant message at the end is gone on with.
Result<void> read_rendering(ChatRequest& out, const Value& body) {
    bool continue_final = false, add_prompt = true;
    const bool says_continue = present(body, "continue_final_message"), says_add = present(body, "add_generation_prompt");
    if (says_continue) {
        Result<bool> read = read_bool("continue_final_message", *body.find("continue_final_message"));
        if (!read) return read.take_error();
        continue_final = read.value();
    }
    if (says_add) {
        Result<bool> read = read_bool("add_generation_prompt", *body.find("add_generation_prompt"));
        if (!read) return read.take_error();
        add_prompt = read.value();
    }
    const bool open_answer = last_is_assistant(out.messages);
    if (continue_final && !open_answer)
        return invalid("continue_final_message", "continue_final_message needs an assistant message at the end");
    // Saying nothing about either and ending with an assistant message means a prefill, as in llama.cpp.
    if (!says_continue && !says_add && open_answer) continue_final = true;
    out.continue_final_message = continue_final;
    out.add_generation_prompt = add_prompt;

    if (!present(body, "chat_template_kwargs")) return {};
    const Value& kwargs = *body.find("chat_template_kwargs");
    if (!kwargs.as_object()) return must_be("chat_template_kwargs", "an object", kwargs);
    for (const json::Member& member : *kwargs.as_object()) out.template_kwargs.emplace_back(member.first, to_template_value(member.second));
    return {};
}

// A token array, when every element is an integer.
Result<Prompt> read_token_prompt(std::string_view field, const json::Array& ids) {
    Prompt prompt;
    prompt.is_tokens = true;
    prompt.tokens.reserve(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
        if (!ids[i].as_int() || *ids[i].as_int() < 0 || *ids[i].as_int() > INT32_MAX)
            return must_be(element_field(field, i), "a token id", ids[i]);
        prompt.tokens.push_back(static_cast<engine::TokenId>(*ids[i].as_int()));
    }
    if (prompt.tokens.empty()) return invalid(std::string(field), std::string(field) + " must have at least one token");
    return prompt;
}

Result<void> read_prompts(CompletionRequest& out, const Value& body) {
    if (!present(body, "prompt")) return invalid("prompt", "prompt is required");
    const Value& value = *body.find("prompt");
    if (const std::string* text = value.as_string()) {
        out.prompts.push_back({*text, {}, false});
        return {};
    }
    const json::Array* list = value.as_array();
    if (!list) return must_be("prompt", "a string, an array of strings, an array of token ids or an array of such arrays", value);
    if (list->empty()) return invalid("prompt", "prompt must not be empty");
    double number = 0;
    if (list->front().number(number)) {
        Result<Prompt> prompt = read_token_prompt("prompt", *list);
        if (!prompt) return prompt.take_error();
        out.prompts.push_back(std::move(prompt).value());
        return {};
    }
    if (list->size() > limits::prompts_count)
        return invalid("prompt", "prompt has " + std::to_string(list->size()) + " prompts, at most " +
                                     std::to_string(limits::prompts_count) + " are allowed");
    for (size_t i = 0; i < list->size(); ++i) {
        const Value& element = (*list)[i];
        const std::string field = element_field("prompt", i);
        if (const std::string* text = element.as_string()) {
            out.prompts.push_back({*text, {}, false});
        } else if (const json::Array* ids = element.as_array()) {
            Result<Prompt> prompt = read_token_prompt(field, *ids);
            if (!prompt) return prompt.take_error();
            out.prompts.push_back(std::move(prompt).value());
        } else {
            return must_be(field, "a string or an array of token ids", element);
        }
    }
    if (out.prompts.size() * out.n_choices > limits::prompts_count)
        return invalid("n", "n times the number of prompts is " + std::to_string(out.prompts.size() * out.n_choices) + ", at most " +
                                std::to_string(limits::prompts_count) + " answers are allowed");
    return {};
}

Result<void> read_completion_fields(CompletionRequest& out, const Value& body) {
    const auto flag = [&](std::string_view name, bool& target) -> Result<void> {
        if (!present(body, name)) return {};
        Result<bool> read = read_bool(name, *body.find(name));
        if (!read) return read.take_error();
        target = read.value();
        return {};
    };
    if (Result<void> read = flag("echo", out.echo); !read) return read;
    if (Result<void> read = flag("parse_special", out.parse_special); !read) return read;
    if (present(body, "logprobs")) {
        Result<int64_t> top = read_int("logprobs", *body.find("logprobs"), 0, limits::top_logprobs);
        if (!top) return top.take_error();
        out.logprobs = true;
        out.top_logprobs = static_cast<uint32_t>(top.value());
        if (out.echo) return unsupported("echo", "echo together with logprobs is not supported: there are no logprobs of prompt tokens");
    }
    if (const Value* suffix = body.find("suffix"); suffix && !suffix->is_null() && !says_nothing(*suffix))
        return unsupported("suffix", "suffix is not supported by this server");
    if (present(body, "best_of")) {
        Result<int64_t> best_of = read_int("best_of", *body.find("best_of"), 1, limits::choices_count);
        if (!best_of) return best_of.take_error();
        if (best_of.value() != out.n_choices) return unsupported("best_of", "best_of is supported only when it equals n");
    }
    return {};
}

}  // namespace

Result<Value> parse_body(std::string_view body) {
    Result<Value> parsed = json::parse(body);
    if (!parsed) return parsed.take_error();
    if (!parsed.value().as_object())
        return invalid("", std::string("the body must be a JSON object, got ") + std::string(parsed.value().kind_name()));
    return parsed;
}

Result<ChatRequest> parse_messages_only(const Value& body) {
    ChatRequest out;
    Result<text::ValueArray> messages = parse_messages(body.find("messages"));
    if (!messages) return messages.take_error();
    out.messages = std::move(messages).value();
    if (Result<void> read = read_rendering(out, body); !read) return read.take_error();
    return out;
}

Result<ChatRequest> parse_chat_request(std::string_view text) {
    Result<Value> body = parse_body(text);
    if (!body) return body.take_error();
    Result<ChatRequest> parsed = parse_messages_only(body.value());
    if (!parsed) return parsed.take_error();
    ChatRequest out = std::move(parsed).value();
    if (Result<void> read = read_shared_fields(out, body.value(),
                                               {"messages", "continue_final_message", "add_generation_prompt", "chat_template_kwargs",
                                                "logprobs", "top_logprobs", "tools", "tool_choice", "functions", "function_call"});
        !read)
        return read.take_error();
    if (Result<void> read = read_chat_logprobs(out, body.value()); !read) return read.take_error();
    if (Result<void> read = check_tools(body.value(), "tools", "tool_choice"); !read) return read.take_error();
    if (Result<void> read = check_tools(body.value(), "functions", "function_call"); !read) return read.take_error();
    return out;
}

Result<CompletionRequest> parse_completion_request(std::string_view text) {
    Result<Value> body = parse_body(text);
    if (!body) return body.take_error();
    CompletionRequest out;
    if (Result<void> read = read_shared_fields(out, body.value(), {"prompt", "echo", "parse_special", "logprobs", "suffix", "best_of"});
        !read)
        return read.take_error();
    if (Result<void> read = read_prompts(out, body.value()); !read) return read.take_error();
    if (Result<void> read = read_completion_fields(out, body.value()); !read) return read.take_error();
    return out;
}

}  // namespace server
