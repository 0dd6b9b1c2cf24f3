// Unicode's normal form C (UAX #15): canonical decomposition, canonical order, canonical composition.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace text {

// One step of a canonical decomposition. second = 0: a single character. `composes`: the pair gives the character back.
struct Decomposition {
    uint32_t code_point, first, second;
    bool composes;
};
// Closed range of code points of one combining class; 0 in no range.
struct CombiningRange {
    uint32_t first, last;
    uint8_t combining;
};
std::span<const Decomposition> decompositions();  // sorted by code_point
std::span<const CombiningRange> combining_ranges();

// True: `text` (valid UTF-8) is in form C for sure. False: nfc() may change it.
bool is_surely_nfc(std::string_view text);
// `text` (valid UTF-8) in form C. O(n log n).
std::string nfc(std::string_view text);

}  // namespace text
