#include "quant/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace quant {
namespace {

// The value of an fp16 by its definition in IEEE 754, in double precision.
double value_of_f16(uint16_t half) {
    const int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    const double sign = half & 0x8000 ? -1 : 1;
    if (exponent == 0x1f) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryF16HasItsValue) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const double expected = value_of_f16(half);
        const float actual = f16_to_f32(half);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(actual)) << bits;
            ASSERT_EQ(f32_to_bits(actual), (bits & 0x8000u) << 16 | 0x7fc00000u | (bits & 0x3ffu) << 13) << "quiet, payload kept";
        } else {
            ASSERT_EQ(static_cast<double>(actual), expected) << bits;
            ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << bits;
        }
    }
}

TEST(Half, EveryF16ComesBack) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const bool is_nan = (bits & 0x7fff) > 0x7c00;
        ASSERT_EQ(f32_to_f16(f16_to_f32(half)), is_nan ? half | 0x200 : half) << bits;
    }
}

// The nearest fp16 by comparing distances in double precision; a tie goes to the even pattern.
uint16_t nearest_f16(float value) {
    const double magnitude = std::fabs(static_cast<double>(value));
    uint32_t low = 0, high = 0x7c00;  // patterns of non-negative halves ascend with their values
    if (magnitude >= 65520) return std::signbit(value) ? 0xfc00 : 0x7c00;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        (value_of_f16(static_cast<uint16_t>(middle)) <= magnitude ? low : high) = middle;
    }
    const double above = high == 0x7c00 ? 65536.0 : value_of_f16(static_cast<uint16_t>(high));
    const double to_low = magnitude - value_of_f16(static_cast<uint16_t>(low)), to_high = above - magnitude;
    const uint32_t chosen = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
    return static_cast<uint16_t>((std::signbit(value) ? 0x8000u : 0u) | chosen);
}

TEST(Half, RoundsToNearestEven) {
    std::mt19937 rng(7);
    for (int i = 0; i < 400'000; ++i) {
        const float value = bits_to_f32(rng());
        if (std::isnan(value)) continue;
        ASSERT_EQ(f32_to_f16(value), nearest_f16(value)) << value;
    }
    // Every midpoint between neighbours, and the floats beside it.
    for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
        const double middle = (value_of_f16(static_cast<uint16_t>(bits)) + value_of_f16(static_cast<uint16_t>(bits + 1))) / 2;
        const auto exact = static_cast<float>(middle);
        for (const float value : {exact, std::nextafter(exact, 0.0f), std::nextafter(exact, 1e9f), -exact})
            ASSERT_EQ(f32_to_f16(value), nearest_f16(value)) << bits;
    }
    EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
    EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
    EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xfc00);
    EXPECT_EQ(f32_to_f16(bits_to_f32(0x7f800001)), 0x7e00);
}

TEST(Half, Bf16IsTheUpperHalf) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        ASSERT_EQ(f32_to_bits(bf16_to_f32(half)), bits << 16);
        const bool is_nan = (bits & 0x7fff) > 0x7f80;
        ASSERT_EQ(f32_to_bf16(bf16_to_f32(half)), is_nan ? half | 0x40 : half) << bits;
    }
    EXPECT_EQ(f32_to_bf16(bits_to_f32(0x3f808000)), 0x3f80) << "a tie goes to the even neighbour";
    EXPECT_EQ(f32_to_bf16(bits_to_f32(0x3f818000)), 0x3f82);
    EXPECT_EQ(f32_to_bf16(bits_to_f32(0x3f808001)), 0x3f81);
    EXPECT_EQ(f32_to_bf16(bits_to_f32(0x7f7fffff)), 0x7f80) << "the largest float rounds to infinity";
    EXPECT_EQ(f32_to_bf16(bits_to_f32(0x7f800001)), 0x7fc0) << "a NaN never becomes infinity";
}

}  // namespace
}  // namespace quant
