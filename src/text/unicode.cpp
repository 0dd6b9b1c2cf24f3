#include "text/unicode.h"

#include <algorithm>
#include <array>

namespace text {

namespace {

CharClass search(uint32_t code_point) {
    const auto ranges = class_ranges();
    const auto it = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                     [](uint32_t value, const ClassRange& range) { return value < range.first; });
    if (it == ranges.begin()) return CharClass::other;
    const ClassRange& range = *std::prev(it);
    return code_point <= range.last ? range.cls : CharClass::other;
}

// Nearly all text of most languages lies below U+0800 or in the CJK block: a table for the first, a test for the second.
constexpr uint32_t table_size = 0x800;

const std::array<CharClass, table_size>& table() {
    static const auto built = [] {
        std::array<CharClass, table_size> t{};
        for (uint32_t cp = 0; cp < table_size; ++cp) t[cp] = search(cp);
        return t;
    }();
    return built;
}

}  // namespace

CharClass char_class(uint32_t code_point) {
    if (code_point < table_size) return table()[code_point];
    if (code_point >= 0x4E00 && code_point <= 0x9FFF) return CharClass::letter;  // CJK Unified Ideographs, one whole range
    return search(code_point);
}

}  // namespace text
