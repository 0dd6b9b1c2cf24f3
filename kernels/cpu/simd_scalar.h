// The vector vocabulary in plain C++: 16 floats, loop by loop. This is the definition of every word; simd_avx2.h and
// simd_avx512.h say the same with instructions, to the bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "quant/half.h"

namespace kernels::cpu::scalar {

struct V { float lane[16]; };

#define LANES for (uint32_t i = 0; i < 16; ++i)

inline V set1(float value) { V v; LANES v.lane[i] = value; return v; }
inline V load(const float* p) { V v; std::memcpy(v.lane, p, sizeof v.lane); return v; }
inline void store(float* p, V v) { std::memcpy(p, v.lane, sizeof v.lane); }
// The first n <= 16 floats; the other lanes are 0 and are neither read nor written.
inline V load_first(const float* p, uint32_t n) { V v = set1(0.0f); std::memcpy(v.lane, p, n * sizeof(float)); return v; }
inline void store_first(float* p, V v, uint32_t n) { std::memcpy(p, v.lane, n * sizeof(float)); }
// Lanes below n (any n) from v, the rest from fill.
inline V keep_first(V v, uint32_t n, V fill) { LANES v.lane[i] = i < n ? v.lane[i] : fill.lane[i]; return v; }
inline V load_half(const uint16_t* p) { V v; LANES v.lane[i] = quant::f16_to_f32(p[i]); return v; }
inline V load_bfloat(const uint16_t* p) { V v; LANES v.lane[i] = quant::bf16_to_f32(p[i]); return v; }
inline void store_half(uint16_t* p, V v) { LANES p[i] = quant::f32_to_f16(v.lane[i]); }

inline V add(V a, V b) { LANES a.lane[i] += b.lane[i]; return a; }
inline V sub(V a, V b) { LANES a.lane[i] -= b.lane[i]; return a; }
inline V mul(V a, V b) { LANES a.lane[i] *= b.lane[i]; return a; }
inline V div(V a, V b) { LANES a.lane[i] /= b.lane[i]; return a; }
inline float fma1(float a, float b, float c) { return std::fma(a, b, c); }
inline V fma(V a, V b, V c) { LANES c.lane[i] = std::fma(a.lane[i], b.lane[i], c.lane[i]); return c; }  // a b + c, one rounding
// The second operand when either is NaN, as the instructions do.
inline V maximum(V a, V b) { LANES b.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; return b; }
inline V minimum(V a, V b) { LANES b.lane[i] = a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; return b; }
inline float square_root(float x) { return std::sqrt(x); }
// Lanes 0 1 2 3 -> 1 0 3 2.
inline V swap_pairs(V v) { V r; LANES r.lane[i] = v.lane[i ^ 1]; return r; }
// v * 2^n, where the low bits of `shifted` hold n and the result is a normal number.
inline V add_exponent(V v, V shifted) {
    LANES v.lane[i] = quant::bits_to_f32(quant::f32_to_bits(v.lane[i]) + (quant::f32_to_bits(shifted.lane[i]) << 23));
    return v;
}
// Tree: lanes i and i + 8, then i and i + 4, i and i + 2, i and i + 1.
inline float sum_lanes(V v) {
    for (uint32_t half = 8; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; ++i) v.lane[i] += v.lane[i + half];
    return v.lane[0];
}
inline float max_lanes(V v) {
    for (uint32_t half = 8; half > 0; half /= 2)
        for (uint32_t i = 0; i < half; ++i) v.lane[i] = v.lane[i] > v.lane[i + half] ? v.lane[i] : v.lane[i + half];
    return v.lane[0];
}
// The largest magnitude by bit pattern: infinity above all numbers, NaN above infinity.
inline float max_magnitude(V a, V b) {
    uint32_t max = 0;
    LANES {
        const uint32_t x = quant::f32_to_bits(a.lane[i]) & 0x7fffffffu, y = quant::f32_to_bits(b.lane[i]) & 0x7fffffffu;
        max = x > max ? x : max;
        max = y > max ? y : max;
    }
    return quant::bits_to_f32(max);
}
// Rounds to nearest, ties to even, stores 16 s8 and returns their sum. |v| <= 127.5; NaN gives some code.
inline int32_t store_codes(int8_t* p, V v) {
    int32_t sum = 0;
    LANES {
        const V magic = set1(12582912.0f);
        const int32_t code = static_cast<int8_t>(quant::f32_to_bits(v.lane[i] + magic.lane[i]) & 0xff);
        p[i] = static_cast<int8_t>(code);
        sum += code;
    }
    return sum;
}

#undef LANES

// Tile sizes of generic/attention.h.
inline constexpr uint32_t kQueries = 1;
inline constexpr uint32_t kScorePanels = 1;
inline constexpr uint32_t kValueLanes = 1;

}  // namespace kernels::cpu::scalar
