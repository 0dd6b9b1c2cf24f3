// AVX2 with FMA and F16C. A panel is walked as two halves of 8 rows; the sums are the same integers as everywhere.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace kernels::cpu::avx2 {
namespace {

#include "kernels/cpu/simd_avx2.h"
#include "kernels/cpu/generic/elementwise.h"
#include "kernels/cpu/generic/attention.h"

#define UNROLL _Pragma("GCC unroll 16")
#define INLINE inline __attribute__((always_inline))

INLINE __m256i broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
}

// 8 scales or offsets: vector `vector` of 16, half 0 or 1.
template <FormInfo const& form>
INLINE __m256 load_meta(const std::byte* meta, uint32_t vector, uint32_t half) {
    if constexpr (form.f32_meta) return _mm256_load_ps(reinterpret_cast<const float*>(meta + vector * 64 + half * 32));
    else return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(meta + vector * 32 + half * 16)));
}

// One half panel (8 rows), COLUMNS columns: COLUMNS * subs integer and COLUMNS float accumulators.
//
// vpmaddubsw saturates at 16 bits. Unsigned codes below 32 times s8 in [-127, 127]: a pair is at most 2 * 31 * 127 = 7874.
//   4-bit codes: 2 * 15 * 127 = 3810 a group, so the 8 groups of a block add up to at most 30480 in 16 bits: one widening a block.
//   8-bit codes with an offset (5 bits used): 4 groups, 31496, then widen.
//   8-bit symmetric codes are s8 (stored + 128): |w| as unsigned times x with w's sign, at most 2 * 128 * 127 = 32512 a group: widen
//   each group. (x is never -128, so the sign form is exact.)
template <Form form_id, uint32_t COLUMNS>
INLINE void integer_half(const MatmulArgs& a, const std::byte* panel, uint32_t half, __m256 (&acc)[COLUMNS]) {
    static constexpr FormInfo form = info(form_id);
    constexpr uint32_t subs = block_k / form.sub_block, meta_vectors = form.has_offset ? 2 : 1;
    const __m256i nibble = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) acc[c] = _mm256_setzero_ps();
    const int8_t* x = a.x.codes;
    for (uint32_t b = 0; b < a.n_blocks; ++b) {
        const std::byte* codes = panel + size_t{b} * form.codes_block_bytes() + half * 32;
        const std::byte* meta = panel + a.meta_offset + size_t{b} * form.meta_block_bytes();
        __m256i sums[subs][COLUMNS];
        UNROLL for (uint32_t s = 0; s < subs; ++s)
            UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) sums[s][c] = _mm256_setzero_si256();
        // The high level, then, 8 bits further down, the low one: sums = 256 * (w . hi) + w . lo.
        for (uint32_t level = 0; level < a.x.levels; ++level, x += COLUMNS * block_k) {
            __m256i part_sums[subs][COLUMNS];
            if constexpr (form.code_bits == 4) {
                __m256i sixteen[subs][COLUMNS];
                UNROLL for (uint32_t g = 0; g < 4; ++g) {
                    const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + g * 64));
                    const __m256i low = _mm256_and_si256(both, nibble), high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                        const __m256i first = _mm256_maddubs_epi16(low, broadcast4(x + c * block_k + g * 4));
                        const __m256i second = _mm256_maddubs_epi16(high, broadcast4(x + c * block_k + 16 + g * 4));
                        if constexpr (subs == 1) {
                            const __m256i pair = _mm256_add_epi16(first, second);
                            sixteen[0][c] = g == 0 ? pair : _mm256_add_epi16(sixteen[0][c], pair);
                        } else {
                            sixteen[0][c] = g == 0 ? first : _mm256_add_epi16(sixteen[0][c], first);
                            sixteen[1][c] = g == 0 ? second : _mm256_add_epi16(sixteen[1][c], second);
                        }
                    }
                }
                UNROLL for (uint32_t s = 0; s < subs; ++s)
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) part_sums[s][c] = _mm256_madd_epi16(sixteen[s][c], ones);
            } else if constexpr (form.has_offset) {
                UNROLL for (uint32_t part = 0; part < 2; ++part) {
                    __m256i sixteen[COLUMNS];
                    UNROLL for (uint32_t g = 0; g < 4; ++g) {
                        const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes + (part * 4 + g) * 64));
                        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                            const __m256i products = _mm256_maddubs_epi16(eight, broadcast4(x + c * block_k + (part * 4 + g) * 4));
                            sixteen[c] = g == 0 ? products : _mm256_add_epi16(sixteen[c], products);
                        }
                    }
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                        const __m256i wide = _mm256_madd_epi16(sixteen[c], ones);
                        if (subs == 2 || part == 0) part_sums[part * (subs - 1)][c] = wide;
                        else part_sums[0][c] = _mm256_add_epi32(part_sums[0][c], wide);
                    }
                }
            } else {
                const __m256i flip = _mm256_set1_epi8(-128);
                UNROLL for (uint32_t g = 0; g < 8; ++g) {
                    const __m256i w = _mm256_xor_si256(_mm256_load_si256(reinterpret_cast<const __m256i*>(codes + g * 64)), flip);
                    const __m256i magnitude = _mm256_abs_epi8(w);
                    constexpr uint32_t groups = 8 / subs;
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                        const __m256i four = _mm256_sign_epi8(broadcast4(x + c * block_k + g * 4), w);
                        const __m256i wide = _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, four), ones);
                        part_sums[g / groups][c] = g % groups == 0 ? wide : _mm256_add_epi32(part_sums[g / groups][c], wide);
                    }
                }
            }
            UNROLL for (uint32_t s = 0; s < subs; ++s)
                UNROLL for (uint32_t c = 0; c < COLUMNS; ++c)
                    sums[s][c] = _mm256_add_epi32(_mm256_slli_epi32(sums[s][c], 8), part_sums[s][c]);
        }
        UNROLL for (uint32_t s = 0; s < subs; ++s) {
            const __m256 scale = load_meta<form>(meta, s * meta_vectors, half);
            UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                __m256i sum = sums[s][c];
                // 4-bit symmetric codes are stored + 8.
                if constexpr (form.code_bits == 4 && !form.has_offset) sum = _mm256_add_epi32(sum, _mm256_set1_epi32(a.x.minus_8_sum[(size_t{b} * subs + s) * COLUMNS + c]));
                const __m256 factor = _mm256_mul_ps(scale, _mm256_set1_ps(a.x.scale[size_t{b} * COLUMNS + c]));
                acc[c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), factor, acc[c]);
            }
            if constexpr (form.has_offset) {
                const __m256 offset = load_meta<form>(meta, s * meta_vectors + 1, half);
                UNROLL for (uint32_t c = 0; c < COLUMNS; ++c)
                    acc[c] = _mm256_fmadd_ps(offset, _mm256_set1_ps(a.x.scaled_sum[(size_t{b} * subs + s) * COLUMNS + c]), acc[c]);
            }
        }
    }
}

template <Form form_id>
INLINE __m256 load_weights(const std::byte* panel, size_t k, uint32_t half) {
    const size_t at = k * panel_rows + half * 8;
    if constexpr (form_id == Form::f32) return _mm256_loadu_ps(reinterpret_cast<const float*>(panel) + at);
    else if constexpr (form_id == Form::f16) return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(reinterpret_cast<const uint16_t*>(panel) + at)));
    else return bfloat8(reinterpret_cast<const uint16_t*>(panel) + at);
}

template <Form form_id, uint32_t COLUMNS>
INLINE void float_half(const MatmulArgs& a, const std::byte* panel, uint32_t half, __m256 (&acc)[COLUMNS]) {
    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) acc[c] = _mm256_setzero_ps();
    const float* x = a.x.values;
    for (uint32_t k = 0; k < a.cols; ++k, x += COLUMNS) {
        const __m256 weights = load_weights<form_id>(panel, k, half);
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) acc[c] = _mm256_fmadd_ps(weights, _mm256_set1_ps(x[c]), acc[c]);
    }
}

template <Form form_id, uint32_t COLUMNS>
void columns_kernel(const MatmulArgs& a) {
    for (uint32_t p = 0; p < a.n_panels; ++p) {
        const std::byte* panel = a.panels + size_t{p} * a.panel_bytes;
        for (uint32_t half = 0; half < 2; ++half) {
            const uint32_t row = p * panel_rows + half * 8;
            if (row >= a.rows) return;
            __m256 acc[COLUMNS];
            if constexpr (info(form_id).sub_block != 0) integer_half<form_id, COLUMNS>(a, panel, half, acc);
            else float_half<form_id, COLUMNS>(a, panel, half, acc);
            const __m256i mask = lanes_below(a.rows - row, 0);
            UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                float* out = a.out + c * a.out_stride + row;
                __m256 result = acc[c];
                if (a.add) result = _mm256_add_ps(_mm256_maskload_ps(out, mask), result);
                _mm256_maskstore_ps(out, mask, result);
            }
        }
    }
}

template <Form form_id>
void matmul(const MatmulArgs& a) {
    switch (a.x.columns) {
        case 1: return columns_kernel<form_id, 1>(a);
        case 2: return columns_kernel<form_id, 2>(a);
        case 3: return columns_kernel<form_id, 3>(a);
        default: return columns_kernel<form_id, 4>(a);
    }
}

}  // namespace

void install(KernelTable& table) {
    table.tile_columns = table.tile_columns_many = 4;
    table.group_panels = 2;
#define X(id, bits, sub, offset, f32_meta) table.matmul[static_cast<size_t>(Form::id)] = matmul<Form::id>;
    KERNELS_INTEGER_FORMS(X)
#undef X
    table.matmul[static_cast<size_t>(Form::f32)] = matmul<Form::f32>;
    table.matmul[static_cast<size_t>(Form::f16)] = matmul<Form::f16>;
    table.matmul[static_cast<size_t>(Form::bf16)] = matmul<Form::bf16>;
    install_elementwise(table);
    install_attention(table);
}

}  // namespace kernels::cpu::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
