// Comparison whose time depends on the lengths alone, so that it tells nothing about a secret's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace base {

// Whether the bytes are the same. Different lengths are told apart at once: compare digests, which have one length.
inline bool equal_in_constant_time(std::span<const uint8_t> a, std::span<const uint8_t> b) {
    if (a.size() != b.size()) return false;
    uint8_t difference = 0;
    for (size_t i = 0; i < a.size(); ++i) difference = static_cast<uint8_t>(difference | (a[i] ^ b[i]));
    // Keeps the compiler from leaving the loop early once `difference` cannot become zero again.
    asm volatile("" : "+r"(difference));
    return difference == 0;
}

}  // namespace base
