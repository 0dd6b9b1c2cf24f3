// Chat templates: any bytes as a template, rendered over fixed variables. What must hold besides not crashing: the same
// answer twice, segments that are not empty and take turns, errors of one short line, and no byte of the user's in the
// template's segments. Every user's string holds U+10FFFD, which a template would have to spell in an escape.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "text/chat_template.h"

namespace {

struct StillClock final : base::Clock {
    int64_t now_ns() const override { return 0; }
    int64_t wall_unix_s() const override { return 1'796'128'496; }
};

constexpr std::string_view mark = "\xF4\x8F\xBF\xBD";

const text::ValueObject& variables() {
    using text::Value, text::ValueArray, text::ValueObject;
    static const auto made = [] {
        const std::string m(mark);
        const auto message = [&](const char* role, const std::string& content) {
            return ValueObject{{"role", role}, {"content", content + m}, {"tags", ValueArray{m, "a" + m}}};
        };
        return ValueObject{
            {"messages", ValueArray{message("system", " Be <b>brief</b>\n"), message("user", "Hi \"you\" é中 {{ x }} %s {}"),
                                    message("assistant", "")}},
            {"tools",
             ValueArray{ValueObject{{"name" + m, m}, {"n", 3}, {"f", 2.5}, {"none", nullptr}, {"deep", ValueArray{ValueArray{m}}}}}},
            {"s", m + "Word word\n" + m},
            {"d", ValueObject{{"b", 1}, {m, 2}, {"C", m}}},
            {"l", ValueArray{3, 1, 2}},
            {"n", 7},
            {"t", true},
            {"bos_token", "<s>"},
        };
    }();
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string source(reinterpret_cast<const char*>(data), size);
    auto parsed = text::ChatTemplate::parse(source);
    if (!parsed) {
        CHECK(!parsed.error().message.empty() && parsed.error().message.size() < 1'000);
        CHECK(parsed.error().message.find('\n') == std::string::npos);
        return 0;
    }
    static constexpr std::string_view trusted[] = {"bos_token"};
    const StillClock clock;
    auto first = parsed.value()->render(variables(), trusted, clock);
    auto second = parsed.value()->render(variables(), trusted, clock);
    CHECK(first.ok() == second.ok());
    if (!first) {
        CHECK(first.error().message == second.error().message);
        return 0;
    }
    CHECK(text::to_string(first.value()) == text::to_string(second.value()));
    const bool spells_it = source.find("10ff") != std::string::npos || source.find("10FF") != std::string::npos ||
                           source.find("10fF") != std::string::npos || source.find("10Ff") != std::string::npos ||
                           source.find(mark) != std::string::npos || source.find("1114109") != std::string::npos;
    for (size_t i = 0; i < first.value().size(); ++i) {
        const text::Segment& segment = first.value()[i];
        CHECK(!segment.text.empty());
        CHECK(base::utf8::is_valid(segment.text));
        CHECK(i == 0 || segment.from_template != first.value()[i - 1].from_template);
        if (segment.from_template && !spells_it) CHECK(segment.text.find(mark) == std::string::npos);
    }
    return 0;
}
