// Letters, digits and numbers in ASCII, whatever the locale. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace base {

inline constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

inline std::string to_lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = lower(c);
    return out;
}

// Sixteen lower-case digits.
inline std::string hex16(uint64_t value) {
    std::string out(16, '0');
    for (size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
    return out;
}

}  // namespace base
