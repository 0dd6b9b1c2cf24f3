// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a random number
// as a pure function of (key, counter). No state, so a draw is the same whoever else draws, and a resumed or repeated
// sequence needs nothing restored. Test vectors: Random123's kat_vectors.
#pragma once

#include <array>
#include <cstdint>

namespace engine {

constexpr std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD251'1F53} * counter[0];
        const uint64_t b = uint64_t{0xCD9E'8D57} * counter[2];
        counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
        key = {key[0] + 0x9E37'79B9, key[1] + 0xBB67'AE85};
    }
    return counter;
}

// Uniform in [0, 1), 53 bits: the draw of generated token `position` of choice `choice` under `seed`.
constexpr double uniform_draw(uint64_t seed, uint32_t choice, uint32_t position) {
    const auto r = philox4x32_10({position, choice, 0, 0}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    return static_cast<double>(((uint64_t{r[0]} << 32) | r[1]) >> 11) * 0x1p-53;
}

}  // namespace engine
