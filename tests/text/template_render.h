// What the chat template tests share.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "text/chat_template.h"

namespace template_tests {

using text::ChatTemplate;
using text::Segment;
using text::Value;
using text::ValueArray;
using text::ValueObject;

// No time passes unless a test says so: what stops a template here are steps and bytes, not the machine's speed.
struct StillClock final : base::Clock {
    int64_t now_ns() const override { return now += tick; }
    int64_t wall_unix_s() const override { return 1'796'128'496; }  // 2026-12-01 12:34:56 UTC
    mutable int64_t now = 0;
    int64_t tick = 0;
};

inline ValueObject message(const char* role, std::string content) { return {{"role", role}, {"content", std::move(content)}}; }

inline ValueObject some_variables() {
    return {{"messages", ValueArray{message("user", "Hi there"), message("assistant", "Hello!")}},
            {"bos_token", "<s>"},
            {"user_text", "from the user"},
            {"n", 5}};
}

struct Outcome {
    bool ok = false;
    base::ErrorCode code = base::ErrorCode::internal;
    std::string text;  // or the message
    std::vector<Segment> segments;
};

inline Outcome render(std::string source, const ValueObject& variables = some_variables(), const base::Clock& clock = StillClock()) {
    auto parsed = ChatTemplate::parse(std::move(source));
    if (!parsed) return {false, parsed.error().code, parsed.error().message, {}};
    static constexpr std::string_view trusted[] = {"bos_token"};
    auto result = parsed.value()->render(variables, trusted, clock);
    if (!result) return {false, result.error().code, result.error().message, {}};
    return {true, base::ErrorCode::internal, text::to_string(result.value()), result.value()};
}

}  // namespace template_tests
