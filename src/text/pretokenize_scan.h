// What the cutters share: reading one character with its class, runs, contractions, white space.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/utf8.h"
#include "text/unicode.h"

namespace text::scan {

struct Character {
    char32_t code_point;
    CharClass cls;
    size_t bytes;
};

inline Character character(std::string_view text, size_t at) {
    const auto c = base::utf8::decode(text, at);
    return {c.code_point, char_class(c.code_point), c.length};
}

// Patterns speak of \r and \n only, never of the other line ends.
inline bool is_line_break(char32_t code_point) { return code_point == '\r' || code_point == '\n'; }

// End of the run of characters that `belongs` accepts, from `at`.
template <typename Belongs>
size_t run_end(std::string_view text, size_t at, Belongs&& belongs) {
    while (at < text.size()) {
        const Character c = character(text, at);
        if (!belongs(c)) break;
        at += c.bytes;
    }
    return at;
}

// Cutter for `[class]+`, isolated: a run inside the class, or one outside.
template <typename Belongs>
size_t runs(std::string_view text, Belongs&& belongs) {
    const Character first = character(text, 0);
    const bool inside = belongs(first);
    return run_end(text, first.bytes, [&](const Character& c) { return belongs(c) == inside; });
}

// Cutter for a pattern that may match nowhere for a while: `match(text, at)` gives the length of the match at `at`, or 0.
// What has none runs up to the next match.
template <typename Match>
size_t match_or_gap(std::string_view text, Match&& match) {
    if (const size_t bytes = match(text, size_t{0})) return bytes;
    size_t at = character(text, 0).bytes;
    while (at < text.size() && match(text, at) == 0) at += character(text, at).bytes;
    return at;
}

// 's 't 're 've 'm 'll 'd at `at`; 0 when there is none. With `any_case` as under (?i:...), where the long s (U+017F) is an s.
inline size_t contraction(std::string_view text, size_t at, bool any_case) {
    if (text.size() - at < 2 || text[at] != '\'') return 0;
    const auto letter = [&](size_t i) -> char {
        if (i >= text.size()) return 0;
        const char c = text[i];
        return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    switch (letter(at + 1)) {
        case 's':
        case 't':
        case 'm':
        case 'd': return 2;
        case 'r':
        case 'v': return letter(at + 2) == 'e' ? 3 : 0;
        case 'l': return letter(at + 2) == 'l' ? 3 : 0;
        default: return any_case && text.substr(at + 1, 2) == "\xC5\xBF" ? 3 : 0;
    }
}

// A run of white space at `at`: its end, where its last character begins, and the end of its last line break.
struct SpaceRun {
    size_t end, last, break_end;  // break_end: 0 when the run has no line break
};
inline SpaceRun space_run(std::string_view text, size_t at) {
    SpaceRun run{at, at, 0};
    while (run.end < text.size()) {
        const Character c = character(text, run.end);
        if (c.cls != CharClass::space) break;
        run.last = run.end;
        run.end += c.bytes;
        if (is_line_break(c.code_point)) run.break_end = run.end;
    }
    return run;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ where white space stands at `at`: up to the last line break of the run; without one the whole
// run at the end of the text, all but its last character before something else, and a single one alone.
inline size_t space_end(std::string_view text, size_t at) {
    const SpaceRun run = space_run(text, at);
    if (run.break_end > 0) return run.break_end;
    if (run.end == text.size() || run.last == at) return run.end;
    return run.last;
}

}  // namespace text::scan
