// BLOOM's pattern:  ?[^(\s|.,!?…。，、।۔،)]+
// A set, whatever its author meant: no parenthesis, white space, bar or the punctuation listed.
#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

namespace {

bool in_word(const scan::Character& c) {
    switch (c.code_point) {
        case '(':
        case ')':
        case '|':
        case '.':
        case ',':
        case '!':
        case '?':
        case 0x2026:  // …
        case 0x3002:  // 。
        case 0xFF0C:  // ，
        case 0x3001:  // 、
        case 0x0964:  // ।
        case 0x06D4:  // ۔
        case 0x060C:  // ،
            return false;
        default: return c.cls != CharClass::space;
    }
}

}  // namespace

size_t bloom(std::string_view text) {
    const auto begins = [](std::string_view t, size_t at) -> size_t {
        const scan::Character first = scan::character(t, at);
        if (in_word(first)) return first.bytes;
        return first.code_point == ' ' && at + 1 < t.size() && in_word(scan::character(t, at + 1)) ? 1 : 0;
    };
    if (const size_t begun = begins(text, 0)) return scan::run_end(text, begun, in_word);
    return scan::match_or_gap(text, begins);
}

}  // namespace text::cut
