// DeepSeek's pipelines: several patterns one after the other, each isolated, then bytes.
//   deepseek-llm:   [\r\n]  \s?[A-Za-zµÀ-Ö...]+  \s?[!-/:-~！-／：-～‘-‟　-。]+  \s+$  [一-龥ࠀ-一가-퟿]+  each digit
//   deepseek-coder: [\r\n]  \s?\p{L}+  \s?\p{P}+  [一-龥ࠀ-一가-퟿]+  each digit
//   deepseek-v3:    \p{N}{1,3}  [一-龥぀-ゟ゠-ヿ]+  and the pattern at v3_words
#include <algorithm>
#include <iterator>

#include "text/pretokenize.h"
#include "text/pretokenize_scan.h"

namespace text::cut {

namespace {

using scan::Character;

// Cutter for `\s?[class]+`, isolated.
template <typename Belongs>
size_t words(std::string_view text, Belongs&& belongs) {
    const auto match = [&](std::string_view t, size_t at) -> size_t {
        const Character first = scan::character(t, at);
        if (belongs(first)) return first.bytes;
        if (first.cls != CharClass::space || at + first.bytes >= t.size()) return 0;
        const Character second = scan::character(t, at + first.bytes);
        return belongs(second) ? first.bytes + second.bytes : 0;
    };
    if (const size_t begun = match(text, 0)) return scan::run_end(text, begun, belongs);
    return scan::match_or_gap(text, match);
}

struct CodePoints {
    char32_t first, last;
};

// The letters of scripts with case as deepseek-llm's pattern lists them, in its own order of ranges.
constexpr CodePoints cased[] = {
    {'A', 'Z'},         {'a', 'z'},         {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},       {0xF8, 0x1BA},
    {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
    {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},
    {0x3F7, 0x481},     {0x48A, 0x52F},     {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},
    {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F},
    {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};

bool is_cased(const Character& c) {
    const auto it = std::upper_bound(std::begin(cased), std::end(cased), c.code_point,
                                     [](char32_t value, const CodePoints& range) { return value < range.first; });
    return it != std::begin(cased) && c.code_point <= std::prev(it)->last;
}

// [!-/:-~！-／：-～‘-‟　-。]; the ASCII letters in :-~ are part of it.
bool is_deepseek_punctuation(const Character& c) {
    const auto in = [&](char32_t first, char32_t last) { return c.code_point >= first && c.code_point <= last; };
    return in('!', '/') || in(':', '~') || in(0xFF01, 0xFF0F) || in(0xFF1A, 0xFF5E) || in(0x2018, 0x201F) || in(0x3000, 0x3002);
}

bool is_ascii_letter(const Character& c) { return (c.code_point >= 'A' && c.code_point <= 'Z') || (c.code_point >= 'a' && c.code_point <= 'z'); }
bool is_mark_or_sign(const Character& c) { return c.cls == CharClass::punctuation || c.cls == CharClass::symbol; }
bool is_letter_or_mark(const Character& c) { return is_letter(c.cls) || c.cls == CharClass::mark; }

}  // namespace

// [\r\n]: each alone
size_t line_breaks(std::string_view text) {
    if (text[0] == '\r' || text[0] == '\n') return 1;
    return std::min(text.find_first_of("\r\n"), text.size());
}

size_t deepseek_letters(std::string_view text) { return words(text, is_cased); }
size_t deepseek_punctuation(std::string_view text) { return words(text, is_deepseek_punctuation); }
size_t coder_letters(std::string_view text) {
    return words(text, [](const Character& c) { return is_letter(c.cls); });
}
size_t coder_punctuation(std::string_view text) {
    return words(text, [](const Character& c) { return c.cls == CharClass::punctuation; });
}

// \s+$. Line breaks stand alone by now, so that $ is the end of the piece.
size_t trailing_space(std::string_view text) {
    size_t end = 0;  // of the last character that is no white space
    for (size_t at = 0; at < text.size();) {
        const Character c = scan::character(text, at);
        at += c.bytes;
        if (c.cls != CharClass::space) end = at;
    }
    return end > 0 ? end : text.size();
}

// [一-龥ࠀ-一가-퟿]+: from U+0800 on to Han, and Hangul with what follows it up to the surrogates
size_t deepseek_cjk(std::string_view text) {
    return scan::runs(text, [](const Character& c) {
        return (c.code_point >= 0x800 && c.code_point <= 0x9FA5) || (c.code_point >= 0xAC00 && c.code_point <= 0xD7FF);
    });
}

// [一-龥぀-ゟ゠-ヿ]+
size_t v3_cjk(std::string_view text) {
    return scan::runs(text, [](const Character& c) {
        return (c.code_point >= 0x4E00 && c.code_point <= 0x9FA5) || (c.code_point >= 0x3040 && c.code_point <= 0x30FF);
    });
}

// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
// |\s*[\r\n]+|\s+(?!\S)|\s+
size_t v3_words(std::string_view text) {
    // Does a match begin here? Control characters, unassigned ones and numbers match only before a letter.
    const auto begins = [](std::string_view t, size_t at) -> size_t {
        const Character first = scan::character(t, at);
        if (first.cls != CharClass::other && first.cls != CharClass::number) return 1;
        return at + first.bytes < t.size() && is_letter_or_mark(scan::character(t, at + first.bytes)) ? 1 : 0;
    };
    if (!begins(text, 0)) return scan::match_or_gap(text, begins);

    const Character first = scan::character(text, 0);
    const bool more = first.bytes < text.size();
    if (first.code_point < 0x80 && is_mark_or_sign(first) && more && is_ascii_letter(scan::character(text, 1))) {
        return scan::run_end(text, 1, is_ascii_letter);
    }
    if (is_letter_or_mark(first)) return scan::run_end(text, first.bytes, is_letter_or_mark);
    if (!scan::is_line_break(first.code_point) && !is_mark_or_sign(first) && more && is_letter_or_mark(scan::character(text, first.bytes))) {
        return scan::run_end(text, first.bytes, is_letter_or_mark);
    }
    const size_t begin = first.code_point == ' ' ? 1 : 0;
    const size_t end = scan::run_end(text, begin, is_mark_or_sign);
    if (end > begin) return scan::run_end(text, end, [](const Character& c) { return scan::is_line_break(c.code_point); });
    return scan::space_end(text, 0);
}

}  // namespace text::cut
