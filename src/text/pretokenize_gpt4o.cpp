// The family of o200k: words are cut where a lower case letter is followed by an upper case one.
#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

namespace {

using scan::Character;

// [\p{Lm}\p{Lo}\p{M}]: in both halves of a word.
bool is_caseless(const Character& c) {
    return c.cls == CharClass::modifier || c.cls == CharClass::letter || c.cls == CharClass::mark;
}
bool in_head(const Character& c) { return is_caseless(c) || c.cls == CharClass::upper || c.cls == CharClass::title; }
bool in_tail(const Character& c) { return is_caseless(c) || c.cls == CharClass::lower; }

// HEAD*TAIL+ at `at` as greedy matching with backtracking finds it; 0 when there is no match. `head_end` becomes the end of
// HEAD*. The head takes all it can. A lower case letter after it begins the tail; otherwise the head gives back down to its
// last caseless character, which is the tail then.
size_t lower_word(std::string_view text, size_t at, size_t& head_end) {
    size_t caseless_end = 0;
    while (at < text.size()) {
        const Character c = scan::character(text, at);
        if (!in_head(c)) break;
        at += c.bytes;
        if (is_caseless(c)) caseless_end = at;
    }
    head_end = at;
    const size_t end = scan::run_end(text, at, in_tail);
    return end > at ? end : caseless_end;
}

// The two alternatives for words:
//   [^\r\n\p{L}\p{N}]?HEAD*TAIL+  and  [^\r\n\p{L}\p{N}]?HEAD+TAIL*
size_t word(std::string_view text) {
    const Character first = scan::character(text, 0);
    if (first.cls == CharClass::number || scan::is_line_break(first.code_point)) return 0;
    const size_t begin = is_letter(first.cls) ? 0 : first.bytes;
    size_t head_end = 0;
    if (const size_t end = lower_word(text, begin, head_end)) return end;
    // The optional character is given back: that helps only a mark, which may be in a word itself. No caseless character
    // comes after it, or it would have matched above: the mark alone.
    if (first.cls == CharClass::mark) return first.bytes;
    return head_end > begin ? head_end : 0;
}

template <bool contractions, int numbers>
size_t cut(std::string_view text) {
    if (const size_t end = word(text)) return end + (contractions && end < text.size() ? scan::contraction(text, end, true) : 0);
    const Character first = scan::character(text, 0);
    if (first.cls == CharClass::number) {
        int left = numbers - 1;
        return scan::run_end(text, first.bytes, [&](const Character& c) { return c.cls == CharClass::number && left-- > 0; });
    }
    // ` ?[^\s\p{L}\p{N}]+[\r\n/]*`
    const size_t begin = first.code_point == ' ' ? 1 : 0;
    const size_t end = scan::run_end(text, begin, [](const Character& c) {
        return c.cls != CharClass::space && c.cls != CharClass::number && !is_letter(c.cls);
    });
    if (end > begin) return scan::run_end(text, end, [](const Character& c) { return scan::is_line_break(c.code_point) || c.code_point == '/'; });
    return scan::space_end(text, 0);
}

}  // namespace

// With HEAD = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], TAIL = [\p{Ll}\p{Lm}\p{Lo}\p{M}]:
//   [^\r\n\p{L}\p{N}]?HEAD*TAIL+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?HEAD+TAIL*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//   |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t gpt4o(std::string_view text) { return cut<true, 3>(text); }

//   [^\r\n\p{L}\p{N}]?HEAD*TAIL+|[^\r\n\p{L}\p{N}]?HEAD+TAIL*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t tekken(std::string_view text) { return cut<false, 1>(text); }

}  // namespace text::cut
