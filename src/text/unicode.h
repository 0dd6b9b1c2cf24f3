// What pre-tokenizers ask of a code point: is it a letter (L*), a number (N*), white space, or something else?
#pragma once

#include <cstdint>
#include <span>

namespace text {

enum class CharClass : uint8_t { other, letter, number, space };

// Closed range of code points of one class; what no range holds is `other`.
struct ClassRange {
    uint32_t first, last;
    CharClass cls;
};

std::span<const ClassRange> class_ranges();  // sorted, disjoint (unicode_tables.cpp)

CharClass char_class(uint32_t code_point);

}  // namespace text
