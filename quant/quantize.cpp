#include "quant/quantize.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "quant/codec.h"
#include "quant/encode.h"
#include "quant/pack.h"

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

// An integer format decodes to scale * code + offset with |code| <= 128. Scale and offset are products of an fp16 and a
// small integer, so finite ones stay far below the greatest fp32: a look at them is a look at every weight.
template <Type type>
bool finite_blocks(const std::byte* src, uint64_t n_blocks) {
    using C = Codec<type>;
    const auto* blocks = reinterpret_cast<const typename C::Block*>(src);
    for (uint64_t k = 0; k < n_blocks; ++k) {
        if constexpr (info(type).block_elements == 1) {
            if (!std::isfinite(C::decode(blocks[k], 0))) return false;
        } else {
            for (uint32_t i = 0; i < info(type).block_elements; i += C::group) {
                if (!std::isfinite(C::scale(blocks[k], i))) return false;
                if constexpr (C::has_offset)
                    if (!std::isfinite(C::offset(blocks[k], i))) return false;
            }
        }
    }
    return true;
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

// To nearest, halves away from zero; exact. Codes are within 127; NaN and what is beyond 127.5 become 0.
int round_away(float x) {
    const float bounded = std::fabs(x) < 127.5f ? x : 0;
    const int whole = static_cast<int>(bounded);
    const float rest = bounded - static_cast<float>(whole);
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

void encode_q8_0(const float* x, BlockQ8_0& out) {
    float magnitude = 0;
    for (int i = 0; i < 32; ++i) magnitude = magnitude > std::fabs(x[i]) ? magnitude : std::fabs(x[i]);
    const float d = magnitude / 127;
    const float id = inverse(d);
    out.d = f32_to_f16(d);
    for (int i = 0; i < 32; ++i) out.qs[i] = static_cast<int8_t>(round_away(x[i] * id));
}

// The value of greatest magnitude (the first of equals) becomes exactly the code -half.
template <int half, typename Block>
void encode_symmetric(const float* x, Block& out) {
    float extreme = x[0];
    for (int i = 1; i < 32; ++i)
        if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
    const float d = extreme / -half;
    const float id = inverse(d);
    uint8_t codes[32];
    for (int i = 0; i < 32; ++i) codes[i] = clamp_code(x[i] * id + (half + 0.5f), 2 * half - 1);
    detail::pack(out, f32_to_f16(d), codes);
}

// The least value becomes code 0, the greatest code `top`.
template <int top, typename Block>
void encode_range(const float* x, Block& out) {
    float low = x[0], high = x[0];
    for (int i = 1; i < 32; ++i) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    const float d = (high - low) / top;
    const float id = inverse(d);
    uint8_t codes[32];
    for (int i = 0; i < 32; ++i) codes[i] = clamp_code((x[i] - low) * id + 0.5f, top);
    detail::pack(out, f32_to_f16(d), f32_to_f16(low), codes);
}

template <typename Block, typename Body>
void each_block(const float* src, std::byte* dst, uint64_t n_blocks, Body body) {
    for (uint64_t k = 0; k < n_blocks; ++k) body(src + k * 32, reinterpret_cast<Block*>(dst)[k]);
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

bool all_finite(Type type, const std::byte* src, uint64_t n) {
    CHECK_EQ(n % info(type).block_elements, 0u);
    const uint64_t n_blocks = n / info(type).block_elements;
    switch (type) {
#define X(id, name, number, elements, bytes) \
    case Type::id: return finite_blocks<Type::id>(src, n_blocks);
        QUANT_TYPES(X)
#undef X
    }
    return false;
}

void quantize_row(Type type, const float* src, std::byte* dst, uint64_t n, const float* importance) {
    CHECK_EQ(n % info(type).block_elements, 0u);
    const uint64_t n_blocks = n / info(type).block_elements;
    const bool ruled = type == Type::q4_0 || type == Type::q4_1 || type == Type::q5_0 || type == Type::q5_1;
    if (importance && ruled) {
        static const detail::Encode search = detail::best_encode();
        return search(type, src, importance, dst, n);
    }
    switch (type) {
        case Type::f32: std::memcpy(dst, src, n * sizeof(float)); break;
        case Type::f16:
            for (uint64_t i = 0; i < n; ++i) reinterpret_cast<BlockF16*>(dst)[i].value = f32_to_f16(src[i]);
            break;
        case Type::bf16:
            for (uint64_t i = 0; i < n; ++i) reinterpret_cast<BlockBF16*>(dst)[i].value = f32_to_bf16(src[i]);
            break;
        case Type::q8_0: each_block<BlockQ8_0>(src, dst, n_blocks, encode_q8_0); break;
        case Type::q4_0: each_block<BlockQ4_0>(src, dst, n_blocks, encode_symmetric<8, BlockQ4_0>); break;
        case Type::q5_0: each_block<BlockQ5_0>(src, dst, n_blocks, encode_symmetric<16, BlockQ5_0>); break;
        case Type::q4_1: each_block<BlockQ4_1>(src, dst, n_blocks, encode_range<15, BlockQ4_1>); break;
        case Type::q5_1: each_block<BlockQ5_1>(src, dst, n_blocks, encode_range<31, BlockQ5_1>); break;
        default: {
            static const detail::Encode search = detail::best_encode();
            search(type, src, importance, dst, n);
        }
    }
}

}  // namespace quant
