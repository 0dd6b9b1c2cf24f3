#include "text/unicode.h"

#include <algorithm>
#include <vector>

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

// All assigned characters but the variation selectors of plane 14 lie below U+33480: one byte for each, of which a
// text touches a few pages.
constexpr uint32_t table_size = 0x33480;

const std::vector<CharClass>& table() {
    static const auto built = [] {
        std::vector<CharClass> t(table_size, CharClass::other);
        for (const ClassRange& range : class_ranges()) {
            for (uint32_t cp = range.first; cp <= range.last && cp < table_size; ++cp) t[cp] = range.cls;
        }
        return t;
    }();
    return built;
}

}  // namespace

CharClass char_class(uint32_t code_point) {
    static const CharClass* const classes = table().data();
    return code_point < table_size ? classes[code_point] : search(code_point);
}

}  // namespace text
