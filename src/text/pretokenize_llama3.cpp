// The family of cl100k: words with one character before them, numbers in groups, punctuation with the line breaks after it.
#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

namespace {

using scan::Character;

// Where members of the family differ.
struct Variant {
    int numbers = 3;               // \p{N}{1,3}; 1: \p{N}; 0: \p{N}+
    bool marks_in_words = false;   // [\p{L}\p{M}]+, and marks are no punctuation
    bool breaks_after_punctuation = true;  // [^\s\p{L}\p{N}]+[\r\n]*
};

template <Variant v>
size_t cut(std::string_view text) {
    if (const size_t bytes = scan::contraction(text, 0, true)) return bytes;
    const auto in_word = [](const Character& c) { return is_letter(c.cls) || (v.marks_in_words && c.cls == CharClass::mark); };
    const Character first = scan::character(text, 0);
    if (in_word(first)) return scan::run_end(text, first.bytes, in_word);
    if (first.cls == CharClass::number) {
        int left = v.numbers - 1;
        return scan::run_end(text, first.bytes,
                             [&](const Character& c) { return c.cls == CharClass::number && (v.numbers == 0 || left-- > 0); });
    }
    // [^\r\n\p{L}\p{N}]?\p{L}+
    if (!scan::is_line_break(first.code_point) && first.bytes < text.size()) {
        const Character second = scan::character(text, first.bytes);
        if (in_word(second)) return scan::run_end(text, first.bytes + second.bytes, in_word);
    }
    // ` ?[^\s\p{L}\p{N}]+[\r\n]*`
    const auto is_punctuation = [&](const Character& c) { return c.cls != CharClass::space && c.cls != CharClass::number && !in_word(c); };
    const size_t begin = first.code_point == ' ' ? 1 : 0;
    const size_t end = scan::run_end(text, begin, is_punctuation);
    if (end > begin) {
        if (!v.breaks_after_punctuation) return end;
        return scan::run_end(text, end, [](const Character& c) { return scan::is_line_break(c.code_point); });
    }
    return scan::space_end(text, 0);
}

}  // namespace

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t llama3(std::string_view text) { return cut<Variant{}>(text); }

// The same with \p{N} for \p{N}{1,3}.
size_t qwen2(std::string_view text) { return cut<Variant{.numbers = 1}>(text); }

// (?i:...)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t qwen35(std::string_view text) { return cut<Variant{.numbers = 1, .marks_in_words = true}>(text); }

// (?i:...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+
size_t seed_coder(std::string_view text) { return cut<Variant{.numbers = 1, .breaks_after_punctuation = false}>(text); }

// After \p{N}{1,3} has cut the numbers out: llama3's with \p{N}+.
size_t minicpm5(std::string_view text) { return cut<Variant{.numbers = 0}>(text); }

}  // namespace text::cut
