// splitmix64 (Steele, Lea and Flood 2014): a permutation of a counter, so nothing comes twice in 2^64.
// For ids, hash seeds and the seeds of requests that bring none; not for secrets. Pure, any thread.
#pragma once

#include <cstdint>

namespace base {

inline constexpr uint64_t golden_gamma = 0x9e3779b97f4a7c15;

inline constexpr uint64_t mix_bits(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

inline uint64_t next_mixed(uint64_t& state) { return mix_bits(state += golden_gamma); }

}  // namespace base
