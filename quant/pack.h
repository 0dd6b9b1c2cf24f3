// Codes into the bytes of a block: the inverse of codec.h's code(), scale() and offset(), drawn in blocks.h.
// A code here is the stored, unsigned number (q of the drawings), one a byte. Pure; any thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/blocks.h"

namespace quant::detail {

// 32 codes below 16: the nibbles of 16 bytes.
inline void pack_nibbles(const uint8_t* codes, uint8_t* qs) {
    for (int j = 0; j < 16; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 0xf) | (codes[j + 16] & 0xf) << 4);
}

// Bit 4 of each of 32 codes: a little-endian mask.
inline void pack_fifth_bits(const uint8_t* codes, uint8_t* qh) {
    uint32_t mask = 0;
    for (int i = 0; i < 32; ++i) mask |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
    for (int k = 0; k < 4; ++k) qh[k] = static_cast<uint8_t>(mask >> (8 * k));
}

// The low two bits of 256 numbers.
inline void pack_two_bits(const uint8_t* numbers, uint8_t* qs) {
    for (int i = 0; i < 64; ++i) {
        const uint8_t* first = numbers + i / 32 * 128 + i % 32;
        qs[i] = static_cast<uint8_t>((first[0] & 3) | (first[32] & 3) << 2 | (first[64] & 3) << 4 | (first[96] & 3) << 6);
    }
}

// Six-bit scales and mins of eight groups (Q4_K, Q5_K).
inline void pack_k_scales(const uint8_t* s, const uint8_t* m, uint8_t* out) {
    for (int k = 0; k < 4; ++k) {
        out[k] = static_cast<uint8_t>(s[k] | (s[k + 4] >> 4) << 6);
        out[k + 4] = static_cast<uint8_t>(m[k] | (m[k + 4] >> 4) << 6);
        out[k + 8] = static_cast<uint8_t>((s[k + 4] & 0xf) | (m[k + 4] & 0xf) << 4);
    }
}

// 256 codes below 16, as Q4_K and Q5_K order them.
inline void pack_k_nibbles(const uint8_t* codes, uint8_t* qs) {
    for (int i = 0; i < 128; ++i) {
        const uint8_t* low = codes + i / 32 * 64 + i % 32;
        qs[i] = static_cast<uint8_t>((low[0] & 0xf) | (low[32] & 0xf) << 4);
    }
}

// Whole blocks from scales (fp16 bits), levels of groups and codes.

inline void pack(BlockQ4_0& out, uint16_t d, const uint8_t* codes) {
    out.d = d;
    pack_nibbles(codes, out.qs);
}

inline void pack(BlockQ5_0& out, uint16_t d, const uint8_t* codes) {
    out.d = d;
    pack_nibbles(codes, out.qs);
    pack_fifth_bits(codes, out.qh);
}

inline void pack(BlockIQ4_NL& out, uint16_t d, const uint8_t* codes) {
    out.d = d;
    pack_nibbles(codes, out.qs);
}

inline void pack(BlockQ4_1& out, uint16_t d, uint16_t m, const uint8_t* codes) {
    out.d = d;
    out.m = m;
    pack_nibbles(codes, out.qs);
}

inline void pack(BlockQ5_1& out, uint16_t d, uint16_t m, const uint8_t* codes) {
    out.d = d;
    out.m = m;
    pack_nibbles(codes, out.qs);
    pack_fifth_bits(codes, out.qh);
}

inline void pack(BlockQ2_K& out, uint16_t d, uint16_t dmin, const uint8_t* scales, const uint8_t* mins, const uint8_t* codes) {
    out.d = d;
    out.dmin = dmin;
    for (int g = 0; g < 16; ++g) out.scales[g] = static_cast<uint8_t>(scales[g] | mins[g] << 4);
    pack_two_bits(codes, out.qs);
}

inline void pack(BlockQ4_K& out, uint16_t d, uint16_t dmin, const uint8_t* scales, const uint8_t* mins, const uint8_t* codes) {
    out.d = d;
    out.dmin = dmin;
    pack_k_scales(scales, mins, out.scales);
    pack_k_nibbles(codes, out.qs);
}

inline void pack(BlockQ5_K& out, uint16_t d, uint16_t dmin, const uint8_t* scales, const uint8_t* mins, const uint8_t* codes) {
    out.d = d;
    out.dmin = dmin;
    pack_k_scales(scales, mins, out.scales);
    pack_k_nibbles(codes, out.qs);
    std::memset(out.qh, 0, sizeof out.qh);
    for (int i = 0; i < 256; ++i) out.qh[i % 32] = static_cast<uint8_t>(out.qh[i % 32] | (codes[i] >> 4 & 1) << (i / 32));
}

// `levels` are the signed scales of the groups, from -32 (Q3_K, IQ4_XS) or -128 (Q6_K).
inline void pack(BlockQ3_K& out, uint16_t d, const int8_t* levels, const uint8_t* codes) {
    out.d = d;
    pack_two_bits(codes, out.qs);
    std::memset(out.hmask, 0, sizeof out.hmask);
    for (int i = 0; i < 256; ++i) out.hmask[i % 32] = static_cast<uint8_t>(out.hmask[i % 32] | (codes[i] >> 2 & 1) << (i / 32));
    std::memset(out.scales, 0, sizeof out.scales);
    for (int g = 0; g < 16; ++g) {
        const int s = levels[g] + 32;
        out.scales[g % 8] = static_cast<uint8_t>(out.scales[g % 8] | (s & 0xf) << (g / 8 * 4));
        out.scales[8 + g % 4] = static_cast<uint8_t>(out.scales[8 + g % 4] | (s >> 4) << (g / 4 * 2));
    }
}

inline void pack(BlockQ6_K& out, uint16_t d, const int8_t* levels, const uint8_t* codes) {
    out.d = d;
    for (int i = 0; i < 128; ++i) {
        const uint8_t* low = codes + i / 64 * 128 + i % 64;
        out.ql[i] = static_cast<uint8_t>((low[0] & 0xf) | (low[64] & 0xf) << 4);
    }
    uint8_t high[256];
    for (int i = 0; i < 256; ++i) high[i] = codes[i] >> 4;
    pack_two_bits(high, out.qh);
    std::memcpy(out.scales, levels, sizeof out.scales);
}

inline void pack(BlockIQ4_XS& out, uint16_t d, const int8_t* levels, const uint8_t* codes) {
    out.d = d;
    uint32_t high = 0;
    std::memset(out.scales_l, 0, sizeof out.scales_l);
    for (int g = 0; g < 8; ++g) {
        const uint32_t s = static_cast<uint32_t>(levels[g] + 32);
        out.scales_l[g / 2] = static_cast<uint8_t>(out.scales_l[g / 2] | (s & 0xf) << (g % 2 * 4));
        high |= (s >> 4) << (2 * g);
        pack_nibbles(codes + 32 * g, out.qs + 16 * g);
    }
    out.scales_h = static_cast<uint16_t>(high);
}

}  // namespace quant::detail
