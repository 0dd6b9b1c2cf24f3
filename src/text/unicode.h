// What pre-tokenizers ask of a code point: its general category, as coarse as their patterns see it.
#pragma once

#include <cstdint>
#include <span>

namespace text {

// Letters come first (upper..letter are Lu, Ll, Lt, Lm, Lo); `mark` is M*, `number` N*, `punctuation` P*, `symbol` S*;
// `space` is the White_Space property, which no other class holds a part of.
enum class CharClass : uint8_t { upper, lower, title, modifier, letter, mark, number, punctuation, symbol, space, other };

constexpr bool is_letter(CharClass cls) { return cls <= CharClass::letter; }

// Closed range of code points of one class; what no range holds is `other`.
struct ClassRange {
    uint32_t first, last;
    CharClass cls;
};

std::span<const ClassRange> class_ranges();  // sorted, disjoint (unicode_tables.cpp)

CharClass char_class(uint32_t code_point);

}  // namespace text
