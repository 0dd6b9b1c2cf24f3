#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace base {
namespace {

// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const uint8_t* at) {
    return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

}  // namespace

void Sha256::block(const uint8_t* bytes) {
    uint32_t w[64];
    for (int t = 0; t < 16; ++t) w[t] = load_big_endian(bytes + 4 * t);
    for (int t = 16; t < 64; ++t) {
        const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int t = 0; t < 64; ++t) {
        const uint32_t big1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t t1 = h + big1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
        const uint32_t big0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t t2 = big0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t round[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += round[i];
}

Sha256& Sha256::update(std::span<const std::byte> bytes) {
    const auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t left = bytes.size();
    while (left > 0) {
        const size_t used = n_bytes_ % 64;
        if (used == 0 && left >= 64) {
            block(at);
            n_bytes_ += 64, at += 64, left -= 64;
            continue;
        }
        const size_t n = std::min(left, 64 - used);
        std::memcpy(pending_.data() + used, at, n);
        n_bytes_ += n, at += n, left -= n;
        if (n_bytes_ % 64 == 0) block(pending_.data());
    }
    return *this;
}

Sha256Digest Sha256::finish() {
    // One bit, zeros up to 8 bytes before the end of a block, then the length in bits, big-endian.
    const uint64_t n_bits = n_bytes_ * 8;
    const size_t used = n_bytes_ % 64;
    uint8_t tail[72] = {0x80};
    const size_t n_padding = (used < 56 ? 56 : 120) - used;
    for (int i = 0; i < 8; ++i) tail[n_padding + i] = static_cast<uint8_t>(n_bits >> (56 - 8 * i));
    update(std::as_bytes(std::span(tail, n_padding + 8)));
    Sha256Digest out;
    for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - i % 4 * 8));
    *this = Sha256();
    return out;
}

Sha256Digest sha256(std::span<const std::byte> bytes) { return Sha256().update(bytes).finish(); }
Sha256Digest sha256(std::string_view text) { return Sha256().update(text).finish(); }

std::string to_hex(std::span<const uint8_t> bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const uint8_t byte : bytes) {
        out += digits[byte >> 4];
        out += digits[byte & 0xf];
    }
    return out;
}

}  // namespace base
