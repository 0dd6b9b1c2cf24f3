#include "quant/quantize.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "quant/codec.h"

namespace quant {
namespace {

template <Type type>
void decode_blocks(const std::byte* src, float* dst, uint64_t n_blocks) {
    using Block = typename Codec<type>::Block;
    constexpr uint32_t elements = info(type).block_elements;
    const auto* blocks = reinterpret_cast<const Block*>(src);
    for (uint64_t k = 0; k < n_blocks; ++k)
        for (uint32_t i = 0; i < elements; ++i) dst[k * elements + i] = Codec<type>::decode(blocks[k], i);
}

// The code of a finite or non-finite float in [0, code_max]: truncated, clamped, NaN to 0. Never an undefined cast.
uint8_t clamp_code(float x, int code_max) {
    if (!(x >= 1)) return 0;
    return static_cast<uint8_t>(x >= static_cast<float>(code_max) ? code_max : static_cast<int>(x));
}

// 1 / d, or 0 where that is no number to scale by (d is 0, or so small that 1 / d overflows; the fp16 scale is then 0
// as well, so the codes do not matter).
float inverse(float d) {
    const float id = 1.0f / d;
    return std::isfinite(id) ? id : 0.0f;
}

void encode_q8_0(const float* x, BlockQ8_0& out) {
    float magnitude = 0;
    for (int i = 0; i < 32; ++i) magnitude = std::fmax(magnitude, std::fabs(x[i]));
    const float d = magnitude / 127;
    const float id = inverse(d);
    out.d = f32_to_f16(d);
    for (int i = 0; i < 32; ++i) {
        const float code = std::round(x[i] * id);  // halves away from zero
        out.qs[i] = code >= -127 && code <= 127 ? static_cast<int8_t>(code) : int8_t{0};
    }
}

void encode_q4_0(const float* x, BlockQ4_0& out) {
    // The value of greatest magnitude (the first of equals) becomes exactly code -8.
    float extreme = x[0];
    for (int i = 1; i < 32; ++i)
        if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    const float d = extreme / -8;
    const float id = inverse(d);
    out.d = f32_to_f16(d);
    for (int i = 0; i < 16; ++i) {
        const uint8_t low = clamp_code(x[i] * id + 8.5f, 15);
        const uint8_t high = clamp_code(x[i + 16] * id + 8.5f, 15);
        out.qs[i] = static_cast<uint8_t>(low | high << 4);
    }
}

void encode_q4_1(const float* x, BlockQ4_1& out) {
    float low_value = x[0], high_value = x[0];
    for (int i = 1; i < 32; ++i) {
        if (x[i] < low_value) low_value = x[i];
        if (x[i] > high_value) high_value = x[i];
    }
    const float d = (high_value - low_value) / 15;
    const float id = inverse(d);
    out.d = f32_to_f16(d);
    out.m = f32_to_f16(low_value);
    for (int i = 0; i < 16; ++i) {
        const uint8_t low = clamp_code((x[i] - low_value) * id + 0.5f, 15);
        const uint8_t high = clamp_code((x[i + 16] - low_value) * id + 0.5f, 15);
        out.qs[i] = static_cast<uint8_t>(low | high << 4);
    }
}

}  // namespace

void dequantize_row(Type type, const std::byte* src, float* dst, uint64_t n) {
    CHECK_EQ(n % info(type).block_elements, 0u);
    const uint64_t n_blocks = n / info(type).block_elements;
    switch (type) {
#define X(id, name, number, elements, bytes) \
    case Type::id: return decode_blocks<Type::id>(src, dst, n_blocks);
        QUANT_TYPES(X)
#undef X
    }
}

bool can_quantize(Type type) {
    switch (type) {
        case Type::f32:
        case Type::f16:
        case Type::bf16:
        case Type::q8_0:
        case Type::q4_0:
        case Type::q4_1: return true;
        default: return false;
    }
}

void quantize_row(Type type, const float* src, std::byte* dst, uint64_t n) {
    CHECK(can_quantize(type));
    CHECK_EQ(n % info(type).block_elements, 0u);
    const uint64_t n_blocks = n / info(type).block_elements;
    switch (type) {
        case Type::f32: std::memcpy(dst, src, n * sizeof(float)); break;
        case Type::f16:
            for (uint64_t i = 0; i < n; ++i) reinterpret_cast<BlockF16*>(dst)[i].value = f32_to_f16(src[i]);
            break;
        case Type::bf16:
            for (uint64_t i = 0; i < n; ++i) reinterpret_cast<BlockBF16*>(dst)[i].value = f32_to_bf16(src[i]);
            break;
        case Type::q8_0:
            for (uint64_t k = 0; k < n_blocks; ++k) encode_q8_0(src + k * 32, reinterpret_cast<BlockQ8_0*>(dst)[k]);
            break;
        case Type::q4_0:
            for (uint64_t k = 0; k < n_blocks; ++k) encode_q4_0(src + k * 32, reinterpret_cast<BlockQ4_0*>(dst)[k]);
            break;
        case Type::q4_1:
            for (uint64_t k = 0; k < n_blocks; ++k) encode_q4_1(src + k * 32, reinterpret_cast<BlockQ4_1*>(dst)[k]);
            break;
        default: break;
    }
}

}  // namespace quant
