// The definition of every format: what weight i of a block is. Scalar kernels, the first CUDA kernel, the quantizer's
// error and the tests all use it; a SIMD kernel is an optimisation of it and is compared with it.
//
//   Codec<T>::decode(block, i)   the weight, an fp32, with the reference decoder's order of fp32 operations:
//                                scale * code                   (has_offset is false)
//                                scale * code + offset          (has_offset is true), rounded after each operation
//   Codec<T>::code(block, i)     the integer the weight is stored as, offset already taken off (q - 8, q - 32, LUT[q])
//   Codec<T>::scale(block, i)    fp32 scale of the group that i belongs to, the product of block and group scale
//   Codec<T>::offset(block, i)   fp32 added after the product (m, or -(dmin * min)); only where has_offset
//   Codec<T>::group              weights that share one scale and offset
//   Codec<T>::code_min/code_max  bounds of code()
// F32, F16 and BF16 have decode alone. i is in [0, block_elements). NaN and infinite scales pass through the
// arithmetic, so they give the NaNs and infinities of IEEE 754. Needs -ffp-contract=off. Pure; host and device.
#pragma once

#include <cstdint>

#include "quant/blocks.h"
#include "quant/half.h"
#include "quant/host_device.h"

namespace quant {

// The 16 levels of IQ4_NL and IQ4_XS, ascending. A function, since device code has no view of a host array.
HEARTH_HD inline int iq4_value(uint32_t index) {
    constexpr int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    return values[index];
}

namespace detail {

// Nibble i of 16 bytes: weights 0..15 in the low halves, 16..31 in the high ones.
HEARTH_HD inline int nibble32(const uint8_t* qs, uint32_t i) { return i < 16 ? qs[i] & 0xf : qs[i - 16] >> 4; }

// Bit i of a little-endian 32-bit mask.
HEARTH_HD inline int bit32(const uint8_t* mask, uint32_t i) { return mask[i / 8] >> (i % 8) & 1; }

// Two-bit code i of 64 bytes (drawing in blocks.h).
HEARTH_HD inline int two_bits(const uint8_t* qs, uint32_t i) { return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }

// Six-bit scale and min of group g in 0..7 (Q4_K, Q5_K).
HEARTH_HD inline int k_scale(const uint8_t* s, uint32_t g) {
    return g < 4 ? s[g] & 0x3f : (s[g + 4] & 0xf) | (s[g - 4] >> 6 & 3) << 4;
}
HEARTH_HD inline int k_min(const uint8_t* s, uint32_t g) {
    return g < 4 ? s[g + 4] & 0x3f : s[g + 4] >> 4 | (s[g] >> 6 & 3) << 4;
}

}  // namespace detail

template <Type>
struct Codec;

template <>
struct Codec<Type::f32> {
    using Block = BlockF32;
    HEARTH_HD static float decode(const Block& b, uint32_t) { return b.value; }
};

template <>
struct Codec<Type::f16> {
    using Block = BlockF16;
    HEARTH_HD static float decode(const Block& b, uint32_t) { return f16_to_f32(b.value); }
};

template <>
struct Codec<Type::bf16> {
    using Block = BlockBF16;
    HEARTH_HD static float decode(const Block& b, uint32_t) { return bf16_to_f32(b.value); }
};

// What the integer formats share.
template <typename Derived, bool with_offset>
struct IntegerCodec {
    static constexpr bool has_offset = with_offset;
    template <typename Block>
    HEARTH_HD static float decode(const Block& b, uint32_t i) {
        const float product = Derived::scale(b, i) * static_cast<float>(Derived::code(b, i));
        if constexpr (with_offset) return product + Derived::offset(b, i);
        return product;
    }
};

template <>
struct Codec<Type::q4_0> : IntegerCodec<Codec<Type::q4_0>, false> {
    using Block = BlockQ4_0;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = -8, code_max = 7;
    HEARTH_HD static int code(const Block& b, uint32_t i) { return detail::nibble32(b.qs, i) - 8; }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
};

template <>
struct Codec<Type::q4_1> : IntegerCodec<Codec<Type::q4_1>, true> {
    using Block = BlockQ4_1;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = 0, code_max = 15;
    HEARTH_HD static int code(const Block& b, uint32_t i) { return detail::nibble32(b.qs, i); }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
    HEARTH_HD static float offset(const Block& b, uint32_t) { return f16_to_f32(b.m); }
};

template <>
struct Codec<Type::q5_0> : IntegerCodec<Codec<Type::q5_0>, false> {
    using Block = BlockQ5_0;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = -16, code_max = 15;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return (detail::nibble32(b.qs, i) | detail::bit32(b.qh, i) << 4) - 16;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
};

template <>
struct Codec<Type::q5_1> : IntegerCodec<Codec<Type::q5_1>, true> {
    using Block = BlockQ5_1;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = 0, code_max = 31;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return detail::nibble32(b.qs, i) | detail::bit32(b.qh, i) << 4;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
    HEARTH_HD static float offset(const Block& b, uint32_t) { return f16_to_f32(b.m); }
};

template <>
struct Codec<Type::q8_0> : IntegerCodec<Codec<Type::q8_0>, false> {
    using Block = BlockQ8_0;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = -128, code_max = 127;
    HEARTH_HD static int code(const Block& b, uint32_t i) { return b.qs[i]; }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
};

template <>
struct Codec<Type::q2_k> : IntegerCodec<Codec<Type::q2_k>, true> {
    using Block = BlockQ2_K;
    static constexpr uint32_t group = 16;
    static constexpr int code_min = 0, code_max = 3;
    HEARTH_HD static int code(const Block& b, uint32_t i) { return detail::two_bits(b.qs, i); }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        return f16_to_f32(b.d) * static_cast<float>(b.scales[i / 16] & 0xf);
    }
    HEARTH_HD static float offset(const Block& b, uint32_t i) {
        return -(f16_to_f32(b.dmin) * static_cast<float>(b.scales[i / 16] >> 4));
    }
};

template <>
struct Codec<Type::q3_k> : IntegerCodec<Codec<Type::q3_k>, false> {
    using Block = BlockQ3_K;
    static constexpr uint32_t group = 16;
    static constexpr int code_min = -4, code_max = 3;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return (detail::two_bits(b.qs, i) | (b.hmask[i % 32] >> (i / 32) & 1) << 2) - 4;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        const uint32_t g = i / 16;
        const int low = g < 8 ? b.scales[g] & 0xf : b.scales[g - 8] >> 4;
        const int high = b.scales[8 + g % 4] >> (g / 4 * 2) & 3;
        return f16_to_f32(b.d) * static_cast<float>((low | high << 4) - 32);
    }
};

template <>
struct Codec<Type::q4_k> : IntegerCodec<Codec<Type::q4_k>, true> {
    using Block = BlockQ4_K;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = 0, code_max = 15;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return b.qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 0xf;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        return f16_to_f32(b.d) * static_cast<float>(detail::k_scale(b.scales, i / 32));
    }
    HEARTH_HD static float offset(const Block& b, uint32_t i) {
        return -(f16_to_f32(b.dmin) * static_cast<float>(detail::k_min(b.scales, i / 32)));
    }
};

template <>
struct Codec<Type::q5_k> : IntegerCodec<Codec<Type::q5_k>, true> {
    using Block = BlockQ5_K;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = 0, code_max = 31;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        const int low = b.qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 0xf;
        return low | (b.qh[i % 32] >> (i / 32) & 1) << 4;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        return f16_to_f32(b.d) * static_cast<float>(detail::k_scale(b.scales, i / 32));
    }
    HEARTH_HD static float offset(const Block& b, uint32_t i) {
        return -(f16_to_f32(b.dmin) * static_cast<float>(detail::k_min(b.scales, i / 32)));
    }
};

template <>
struct Codec<Type::q6_k> : IntegerCodec<Codec<Type::q6_k>, false> {
    using Block = BlockQ6_K;
    static constexpr uint32_t group = 16;
    static constexpr int code_min = -32, code_max = 31;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        const int low = b.ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 0xf;
        return (low | detail::two_bits(b.qh, i) << 4) - 32;
    }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        return f16_to_f32(b.d) * static_cast<float>(b.scales[i / 16]);
    }
};

template <>
struct Codec<Type::iq4_nl> : IntegerCodec<Codec<Type::iq4_nl>, false> {
    using Block = BlockIQ4_NL;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = -127, code_max = 113;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return iq4_value(static_cast<uint32_t>(detail::nibble32(b.qs, i)));
    }
    HEARTH_HD static float scale(const Block& b, uint32_t) { return f16_to_f32(b.d); }
};

template <>
struct Codec<Type::iq4_xs> : IntegerCodec<Codec<Type::iq4_xs>, false> {
    using Block = BlockIQ4_XS;
    static constexpr uint32_t group = 32;
    static constexpr int code_min = -127, code_max = 113;
    HEARTH_HD static int code(const Block& b, uint32_t i) {
        return iq4_value(static_cast<uint32_t>(detail::nibble32(b.qs + i / 32 * 16, i % 32)));
    }
    HEARTH_HD static float scale(const Block& b, uint32_t i) {
        const uint32_t g = i / 32;
        const int low = b.scales_l[g / 2] >> (g % 2 * 4) & 0xf;
        const int high = b.scales_h >> (2 * g) & 3;
        return f16_to_f32(b.d) * static_cast<float>((low | high << 4) - 32);
    }
};

}  // namespace quant
