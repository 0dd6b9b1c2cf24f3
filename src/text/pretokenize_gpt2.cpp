// GPT-2's pattern and the cutters of numbers that other pipelines put before or after it.
#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

using scan::Character;

namespace {

bool is_number(const Character& c) { return c.cls == CharClass::number; }

// The kinds of run in GPT-2's pattern.
int kind(CharClass cls) { return is_letter(cls) ? 0 : cls == CharClass::number ? 1 : cls == CharClass::space ? 2 : 3; }

}  // namespace

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2(std::string_view text) {
    if (const size_t bytes = scan::contraction(text, 0, false)) return bytes;
    const Character first = scan::character(text, 0);
    size_t at = first.bytes;
    CharClass cls = first.cls;
    if (first.cls == CharClass::space) {
        const scan::SpaceRun run = scan::space_run(text, 0);
        if (run.end == text.size()) return run.end;
        if (run.last > 0) return run.last;           // \s+(?!\S) leaves one for what follows
        if (first.code_point != ' ') return run.end;
        cls = scan::character(text, at).cls;
    }
    return scan::run_end(text, at, [wanted = kind(cls)](const Character& c) { return kind(c.cls) == wanted; });
}

size_t number(std::string_view text) {
    const Character first = scan::character(text, 0);
    if (is_number(first)) return first.bytes;
    return scan::run_end(text, first.bytes, [](const Character& c) { return !is_number(c); });
}

size_t numbers(std::string_view text) { return scan::runs(text, is_number); }

size_t numbers_3(std::string_view text) {
    const Character first = scan::character(text, 0);
    if (!is_number(first)) return scan::run_end(text, first.bytes, [](const Character& c) { return !is_number(c); });
    int left = 2;
    return scan::run_end(text, first.bytes, [&](const Character& c) { return is_number(c) && left-- > 0; });
}

size_t digits_3(std::string_view text) {
    return scan::match_or_gap(text, [](std::string_view t, size_t at) -> size_t {
        if (t.size() - at < 3) return 0;
        for (size_t i = at; i < at + 3; ++i) {
            if (t[i] < '0' || t[i] > '9') return 0;
        }
        return 3;
    });
}

}  // namespace text::cut
