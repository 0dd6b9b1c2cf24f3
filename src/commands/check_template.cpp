// Checks of the chat template, by rendering conversations whose words can be found again.
#include <algorithm>
#include <array>
#include <vector>

#include "base/message.h"
#include "commands/check.h"

namespace commands {
namespace {

using base::cat;
using base::printable;
using text::ValueArray;
using text::ValueObject;

// One word each, so that no filter of a template takes them apart.
constexpr std::string_view question = "hearthquestion", answer = "hearthanswer", instruction = "hearthinstruction";

ValueObject message(std::string_view role, std::string_view content) {
    return {{"role", std::string(role)}, {"content", std::string(content)}};
}

text::Value weather_tool() {
    const ValueObject city{{"type", "string"}, {"description", "Name of the city"}};
    const ValueObject parameters{{"type", "object"}, {"properties", ValueObject{{"city", city}}}, {"required", ValueArray{"city"}}};
    const ValueObject function{{"name", "get_weather"}, {"description", "The weather of a city"}, {"parameters", parameters}};
    return ValueArray{ValueObject{{"type", "function"}, {"function", function}}};
}

// As the server renders (server/prepare.cpp).
base::Result<std::string> render(const CheckedModel& model, ValueArray messages, text::Value tools, bool add_generation_prompt) {
    const auto token = [&](text::TokenId id) { return id < 0 ? std::string() : std::string(model.tokenizer->token_bytes(id)); };
    ValueObject variables;
    variables.emplace_back("messages", std::move(messages));
    variables.emplace_back("tools", std::move(tools));
    variables.emplace_back("documents", nullptr);
    variables.emplace_back("add_generation_prompt", add_generation_prompt);
    variables.emplace_back("bos_token", model.tokenizer ? token(model.tokenizer->bos_id()) : "");
    variables.emplace_back("eos_token", model.tokenizer ? token(model.tokenizer->eos_id()) : "");
    static constexpr std::array<std::string_view, 2> trusted = {"bos_token", "eos_token"};
    auto segments = model.chat_template->render(variables, trusted, model.clock);
    if (!segments) return segments.take_error();
    return text::to_string(segments.value());
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

void check_chat_template(const CheckedModel& model, Findings& findings) {
    if (model.template_problem) return findings.add(Severity::error, cat("the chat template cannot be read: ", model.template_problem->message));
    if (!model.chat_template) return findings.add(Severity::warning, "the file has no chat template; serving a chat takes --chat-template");

    auto plain = render(model, {message("user", question)}, nullptr, true);
    if (!plain) return findings.add(Severity::error, cat("a plain conversation cannot be rendered: ", printable(plain.error().message, 500)));
    if (!contains(plain.value(), question)) findings.add(Severity::error, "the text of the user is not in the prompt");
    const auto longer = render(model, {message("user", question), message("assistant", answer), message("user", question)}, nullptr, true);
    if (!longer)
        findings.add(Severity::error, cat("a conversation of two turns cannot be rendered: ", printable(longer.error().message, 500)));
    else if (!contains(longer.value(), answer))
        findings.add(Severity::error, "earlier answers are not in the prompt");

    // A template that refuses on purpose says so by raise_exception, and that text is what a client gets to read.
    const bool may_raise = contains(std::string(model.chat_template->source()), "raise_exception");
    const auto add_failure = [&](std::string_view with, const base::Error& error) {
        const bool on_purpose = may_raise && error.code == base::ErrorCode::invalid_argument;
        findings.add(on_purpose ? Severity::note : Severity::error,
                     cat("a conversation with ", with, on_purpose ? " is refused by the template: " : " cannot be rendered: ", printable(error.message, 500)));
    };
    const auto with_system = render(model, {message("system", instruction), message("user", question)}, nullptr, true);
    if (!with_system)
        add_failure("a system message", with_system.error());
    else if (!contains(with_system.value(), instruction))
        findings.add(Severity::warning, "the system message is not in the prompt");
    const auto with_tools = render(model, {message("user", question)}, weather_tool(), true);
    if (!with_tools)
        add_failure("tools", with_tools.error());
    else if (!contains(with_tools.value(), question))
        findings.add(Severity::error, "with tools the text of the user is not in the prompt");
}

// What the model is to write behind an answer is what the template puts behind an earlier one.
void check_end_of_turn(const CheckedModel& model, Findings& findings) {
    if (!model.tokenizer || !model.chat_template) return;
    const auto rendered = render(model, {message("user", question), message("assistant", answer)}, nullptr, false);
    if (!rendered) return;
    const size_t at = rendered.value().rfind(answer);
    if (at == std::string::npos) return;  // check_chat_template says so
    std::vector<text::TokenId> tail;
    model.tokenizer->encode(std::string_view(rendered.value()).substr(at + answer.size()), true, tail);
    for (const text::TokenId id : tail) {
        if (model.tokenizer->is_end_of_generation(id)) return;
        if (model.tokenizer->token_kind(id) != text::TokenKind::control) continue;
        return findings.add(Severity::error, cat("the template ends a turn with token ", id, ", \"", printable(model.tokenizer->token_bytes(id)),
                                                 "\", which is not among those that end an answer (tokenizer.ggml.eos_token_id is ", model.tokenizer->eos_id(),
                                                 "): answers would run on"));
    }
    findings.add(Severity::warning, "the template puts no special token behind an answer: a model that learned so never ends one");
}

}  // namespace commands
