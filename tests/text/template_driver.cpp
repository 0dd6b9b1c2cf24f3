// Chat templates on a pipe, for template_parity.py. Records on stdin:
//   'T' u32 length, source                 parses; answers u8 ok, u32 length, message
//   'R' value (an object), u32 n, n names  renders the last template; answers u8 ok, u32 length, text or message,
//                                          and when ok: u32 n, n times (u32 length, u8 from_template)
// Values: n t f | i i64 | d f64 | s u32 bytes | l u32 values | o u32 (u32 bytes, value)
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "text/chat_template.h"

namespace {

template <typename T>
T read() {
    T value;
    if (std::fread(&value, sizeof value, 1, stdin) != 1) std::exit(3);
    return value;
}

std::string read_string() {
    std::string text(read<uint32_t>(), '\0');
    if (std::fread(text.data(), 1, text.size(), stdin) != text.size()) std::exit(3);
    return text;
}

text::Value read_value() {
    switch (read<char>()) {
        case 't': return true;
        case 'f': return false;
        case 'i': return read<int64_t>();
        case 'd': return read<double>();
        case 's': return read_string();
        case 'l': {
            text::ValueArray items;
            for (uint32_t n = read<uint32_t>(); n > 0; --n) items.push_back(read_value());
            return items;
        }
        case 'o': {
            text::ValueObject entries;
            for (uint32_t n = read<uint32_t>(); n > 0; --n) {
                std::string key = read_string();
                entries.emplace_back(std::move(key), read_value());
            }
            return entries;
        }
        default: return nullptr;
    }
}

void write_u32(size_t n) {
    const uint32_t value = static_cast<uint32_t>(n);
    std::fwrite(&value, sizeof value, 1, stdout);
}

void answer(bool ok, const std::string& text) {
    std::putchar(ok);
    write_u32(text.size());
    std::fwrite(text.data(), 1, text.size(), stdout);
}

// 2026-12-01 12:34:56 UTC; no time passes.
struct FixedClock final : base::Clock {
    int64_t now_ns() const override { return 0; }
    int64_t wall_unix_s() const override { return 1'796'128'496; }
};

}  // namespace

int main() {
    std::unique_ptr<text::ChatTemplate> chat_template;
    const FixedClock clock;
    for (int command; (command = std::getchar()) != EOF; std::fflush(stdout)) {
        if (command == 'T') {
            auto parsed = text::ChatTemplate::parse(read_string());
            answer(parsed.ok(), parsed.ok() ? "" : parsed.error().message);
            chat_template = parsed.ok() ? std::move(parsed).value() : nullptr;
        } else {
            const text::Value variables = read_value();
            std::vector<std::string> names;
            for (uint32_t n = read<uint32_t>(); n > 0; --n) names.push_back(read_string());
            const std::vector<std::string_view> trusted(names.begin(), names.end());
            if (!chat_template) {
                answer(false, "no template");
                continue;
            }
            auto rendered = chat_template->render(std::get<text::ValueObject>(variables.data), trusted, clock);
            answer(rendered.ok(), rendered.ok() ? text::to_string(rendered.value()) : rendered.error().message);
            if (!rendered.ok()) continue;
            write_u32(rendered.value().size());
            for (const text::Segment& segment : rendered.value()) {
                write_u32(segment.text.size());
                std::putchar(segment.from_template);
            }
        }
    }
    return 0;
}
