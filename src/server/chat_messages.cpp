// The `messages` of a chat request as the values that a chat template reads.
#include <algorithm>
#include <array>

#include "base/limits.h"
#include "server/openai.h"
#include "server/openai_request.h"
#include "server/request_fields.h"

namespace server {
namespace {

constexpr std::array<std::string_view, 6> roles = {"system", "developer", "user", "assistant", "tool", "function"};

// Members of a message that a template may read besides role and content.
constexpr std::array<std::string_view, 5> passed_members = {"name", "tool_calls", "tool_call_id", "reasoning_content", "function_call"};

// One part of a content array. Text only: this model sees no images and hears nothing.
base::Result<std::string> part_text(const std::string& field, const json::Value& part) {
    if (const std::string* text = part.as_string()) return *text;
    if (!part.as_object()) return must_be(field, "a string or an object with a type", part);
    const json::Value* type = part.find("type");
    const std::string* name = type ? type->as_string() : nullptr;
    if (!name) return invalid(field + ".type", field + ".type is required and must be a string");
    if (*name != "text" && *name != "input_text" && *name != "refusal")
        return unsupported(field + ".type", field + ".type " + shown(*type) + " is not supported: this model reads text parts only");
    const std::string_view member = *name == "refusal" ? "refusal" : "text";
    const json::Value* text = part.find(member);
    const std::string text_field = field + "." + std::string(member);
    if (!text) return invalid(text_field, text_field + " is required");
    return read_string(text_field, *text);
}

base::Result<std::string> content_text(const std::string& field, const json::Value& content) {
    if (const std::string* text = content.as_string()) return *text;
    const json::Array* parts = content.as_array();
    if (!parts) return must_be(field, "a string, null or an array of parts", content);
    if (parts->size() > limits::message_parts_count)
        return invalid(field, field + " has " + std::to_string(parts->size()) + " parts, at most " +
                                  std::to_string(limits::message_parts_count) + " are allowed");
    std::string joined;
    for (size_t i = 0; i < parts->size(); ++i) {
        base::Result<std::string> text = part_text(element_field(field, i), (*parts)[i]);
        if (!text) return text.take_error();
        if (i > 0) joined += '\n';  // as vLLM and llama.cpp join them
        joined += text.value();
    }
    return joined;
}

base::Result<text::Value> parse_message(const std::string& field, const json::Value& message) {
    if (!message.as_object()) return must_be(field, "an object with role and content", message);
    const json::Value* role_value = message.find("role");
    const std::string role_field = field + ".role";
    if (!role_value || role_value->is_null()) return invalid(role_field, role_field + " is required");
    base::Result<std::string> role = read_string(role_field, *role_value);
    if (!role) return role.take_error();
    if (std::find(roles.begin(), roles.end(), role.value()) == roles.end())
        return must_be(role_field, "one of system, developer, user, assistant, tool, function", *role_value);
    // Templates know no "developer": it is OpenAI's newer word for the system role.
    const std::string role_name = role.value() == "developer" ? "system" : role.value();

    const json::Value* content = message.find("content");
    std::string text;
    if (content && !content->is_null()) {
        base::Result<std::string> read = content_text(field + ".content", *content);
        if (!read) return read.take_error();
        text = std::move(read).value();
    } else if (role_name == "system" || role_name == "user") {
        return invalid(field + ".content", field + ".content is required for role " + role.value());
    }

    text::ValueObject out;
    out.emplace_back("role", role_name);
    out.emplace_back("content", std::move(text));
    for (const std::string_view name : passed_members) {
        const json::Value* member = message.find(name);
        if (!member || member->is_null()) continue;
        const std::string member_field = field + "." + std::string(name);
        if (name == "tool_calls" && !member->as_array()) return must_be(member_field, "an array", *member);
        if (name == "function_call" && !member->as_object()) return must_be(member_field, "an object", *member);
        if (name != "tool_calls" && name != "function_call" && !member->as_string()) return must_be(member_field, "a string", *member);
        out.emplace_back(std::string(name), to_template_value(*member));
    }
    return text::Value(std::move(out));
}

}  // namespace

base::Result<text::ValueArray> parse_messages(const json::Value* value) {
    if (!value || value->is_null()) return invalid("messages", "messages is required");
    const json::Array* array = value->as_array();
    if (!array) return must_be("messages", "an array of messages", *value);
    if (array->empty()) return invalid("messages", "messages must have at least one message");
    if (array->size() > limits::messages_count)
        return invalid("messages", "messages has " + std::to_string(array->size()) + " messages, at most " +
                                       std::to_string(limits::messages_count) + " are allowed");
    text::ValueArray out;
    out.reserve(array->size());
    for (size_t i = 0; i < array->size(); ++i) {
        base::Result<text::Value> message = parse_message(element_field("messages", i), (*array)[i]);
        if (!message) return message.take_error();
        out.push_back(std::move(message).value());
    }
    return out;
}

text::Value to_template_value(const json::Value& value) {
    if (const json::Array* array = value.as_array()) {
        text::ValueArray out;
        out.reserve(array->size());
        for (const json::Value& element : *array) out.push_back(to_template_value(element));
        return out;
    }
    if (const json::Object* object = value.as_object()) {
        text::ValueObject out;
        out.reserve(object->size());
        for (const json::Member& member : *object) out.emplace_back(member.first, to_template_value(member.second));
        return out;
    }
    if (const std::string* text = value.as_string()) return *text;
    if (const bool* flag = value.as_bool()) return *flag;
    if (const int64_t* i = value.as_int()) return *i;
    if (const uint64_t* u = value.as_uint()) return static_cast<double>(*u);
    if (const double* d = value.as_double()) return *d;
    return nullptr;
}

}  // namespace server
