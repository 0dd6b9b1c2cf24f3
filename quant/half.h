// fp16 (IEEE 754 binary16) and bf16 (upper half of binary32) as bit patterns, converted in integer arithmetic.
// The results are those of F16C (vcvtph2ps, vcvtps2ph with round-to-nearest-even): a signalling NaN becomes quiet,
// its sign and the upper bits of its payload stay. So scalar code and SIMD code agree on every bit pattern.
// Pure; any thread; host and device. Independent of the FTZ/DAZ bits except where said.
#pragma once

#include <cstdint>
#include <cstring>

#include "quant/host_device.h"

namespace quant {

HEARTH_HD inline float bits_to_f32(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

HEARTH_HD inline uint32_t f32_to_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Exact: every fp16 value is an fp32 value.
HEARTH_HD inline float f16_to_f32(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    const uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f) return bits_to_f32(sign | 0x7f800000u | (mantissa != 0 ? 0x400000u | mantissa << 13 : 0));
    if (exponent == 0) {
        // Zero or subnormal: mantissa * 2^-24. The smallest non-zero one is a normal fp32, so FTZ does not touch it.
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
        return bits_to_f32(sign | f32_to_bits(magnitude));
    }
    return bits_to_f32(sign | (exponent + 112) << 23 | mantissa << 13);  // 112 = 127 - 15, the two biases
}

// Round to nearest, ties to even; beyond 65504 + half a step becomes infinity, below half of 2^-24 a signed zero.
HEARTH_HD inline uint16_t f32_to_f16(float value) {
    const uint32_t bits = f32_to_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t result;
    if (magnitude > 0x7f800000u) {
        result = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) {  // 65520 = 65504 + half a step; the tie goes to the even neighbour, infinity
        result = 0x7c00u;
    } else if (magnitude >= 0x38800000u) {  // 2^-14, the smallest normal
        // Adding 0xfff and the last kept bit rounds to nearest even; a carry walks into the exponent, as it should.
        result = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    } else if (magnitude < 0x33000000u) {  // below 2^-25: nearer to zero than to 2^-24
        result = 0;
    } else {
        const uint32_t exponent = magnitude >> 23;                  // 102..112
        const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        const uint32_t shift = 126 - exponent;                      // 14..24: mantissa * 2^(exponent-150) = (mantissa >> shift) * 2^-24
        const uint32_t kept = mantissa >> shift;
        const uint32_t rest = mantissa & ((1u << shift) - 1), half_step = 1u << (shift - 1);
        result = kept + (rest > half_step || (rest == half_step && (kept & 1u)));
    }
    return static_cast<uint16_t>(sign | result);
}

HEARTH_HD inline float bf16_to_f32(uint16_t half) { return bits_to_f32(static_cast<uint32_t>(half) << 16); }

// Round to nearest, ties to even; NaN stays NaN (made quiet).
HEARTH_HD inline uint16_t f32_to_bf16(float value) {
    const uint32_t bits = f32_to_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace quant
