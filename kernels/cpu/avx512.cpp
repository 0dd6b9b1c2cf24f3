// AVX-512 with VNNI. Target region instead of compiler flags for the file: with flags, an inline function shared with
// baseline code can be linked as its AVX copy and crash an older machine.
#if defined(__x86_64__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/kernel_table.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
// GCC 12's own intrinsics start from an undefined vector.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace kernels::cpu::avx512 {
namespace {

#include "kernels/cpu/simd_avx512.h"
#include "kernels/cpu/generic/elementwise.h"
#include "kernels/cpu/generic/attention.h"

#define UNROLL _Pragma("GCC unroll 16")
// Registers hold what a loop of a dozen dots needs; unrolling it too would make this file take minutes to compile.
#define ROLL _Pragma("GCC unroll 1")
#define INLINE inline __attribute__((always_inline))

INLINE __m512i broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
}

INLINE void prefetch(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

template <FormInfo const& form>
INLINE __m512 load_meta(const std::byte* meta, uint32_t vector) {
    if constexpr (form.f32_meta) return _mm512_load_ps(reinterpret_cast<const float*>(meta + vector * 64));
    else return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(meta + vector * 32)));
}

// One vpdpbusd takes 4 k of 16 rows for one column. Chains: PANELS x COLUMNS integer accumulators, as many float ones.
template <Form form_id, uint32_t PANELS, uint32_t COLUMNS>
void integer_tile(const MatmulArgs& a, uint32_t first_panel) {
    static constexpr FormInfo form = info(form_id);
    constexpr uint32_t subs = block_k / form.sub_block, groups = 8 / subs;
    constexpr uint32_t meta_vectors = form.has_offset ? 2 : 1;
    const std::byte* panels[PANELS];
    UNROLL for (uint32_t p = 0; p < PANELS; ++p) panels[p] = a.panels + size_t{first_panel + p} * a.panel_bytes;
    __m512 acc[PANELS][COLUMNS];
    UNROLL for (uint32_t p = 0; p < PANELS; ++p)
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) acc[p][c] = _mm512_setzero_ps();
    const __m512i nibble = _mm512_set1_epi8(15);

    const int8_t* x = a.x.codes;
    for (uint32_t b = 0; b < a.n_blocks; ++b) {
        const size_t codes_at = size_t{b} * form.codes_block_bytes(), meta_at = a.meta_offset + size_t{b} * form.meta_block_bytes();
        __m512i sums[subs][PANELS][COLUMNS];
        UNROLL for (uint32_t s = 0; s < subs; ++s)
            UNROLL for (uint32_t p = 0; p < PANELS; ++p)
                UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) sums[s][p][c] = _mm512_setzero_si512();
        if (a.prefetch) {
            // The same block of the panels that come next: the hardware follows neither that many streams nor their jumps. Measured on
            // SmolLM2 Q4_1, one column: 168 tokens per CPU second without, 235 with.
            UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
                const std::byte* next = panels[p] + PANELS * a.panel_bytes;
                for (uint32_t line = 0; line < form.codes_block_bytes() / 64; ++line) prefetch(next + codes_at + line * 64);
                for (uint32_t line = 0; line < (form.meta_block_bytes() + 63) / 64; ++line) prefetch(next + meta_at + line * 64);
            }
        }
        // The high level, then, 8 bits further down, the low one: sums = 256 * (w . hi) + w . lo.
        for (uint32_t level = a.x.levels;;) {
            if constexpr (form.code_bits == 4) {
                ROLL for (uint32_t g = 0; g < 4; ++g) {
                    __m512i low[PANELS], high[PANELS];
                    UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
                        const __m512i both = _mm512_load_si512(panels[p] + codes_at + g * 64);
                        low[p] = _mm512_and_si512(both, nibble);
                        high[p] = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
                    }
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                        const __m512i x_low = broadcast4(x + c * block_k + g * 4), x_high = broadcast4(x + c * block_k + 16 + g * 4);
                        UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
                            sums[0][p][c] = _mm512_dpbusd_epi32(sums[0][p][c], low[p], x_low);
                            sums[subs - 1][p][c] = _mm512_dpbusd_epi32(sums[subs - 1][p][c], high[p], x_high);
                        }
                    }
                }
            } else {
                UNROLL for (uint32_t s = 0; s < subs; ++s)
                    ROLL for (uint32_t g = s * groups; g < (s + 1) * groups; ++g) {
                        __m512i codes[PANELS];
                        UNROLL for (uint32_t p = 0; p < PANELS; ++p) codes[p] = _mm512_load_si512(panels[p] + codes_at + g * 64);
                        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                            const __m512i four = broadcast4(x + c * block_k + g * 4);
                            UNROLL for (uint32_t p = 0; p < PANELS; ++p) sums[s][p][c] = _mm512_dpbusd_epi32(sums[s][p][c], codes[p], four);
                        }
                    }
            }
            x += COLUMNS * block_k;
            if (--level == 0) break;
            UNROLL for (uint32_t s = 0; s < subs; ++s)
                UNROLL for (uint32_t p = 0; p < PANELS; ++p)
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) sums[s][p][c] = _mm512_slli_epi32(sums[s][p][c], 8);
        }
        if constexpr (!form.has_offset) {
            // Codes are stored + 8 or + 128.
            UNROLL for (uint32_t s = 0; s < subs; ++s)
                UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                    __m512i bias = _mm512_set1_epi32(a.x.minus_8_sum[(size_t{b} * subs + s) * COLUMNS + c]);
                    if constexpr (form.code_bits == 8) bias = _mm512_slli_epi32(bias, 4);
                    UNROLL for (uint32_t p = 0; p < PANELS; ++p) sums[s][p][c] = _mm512_add_epi32(sums[s][p][c], bias);
                }
        }
        UNROLL for (uint32_t s = 0; s < subs; ++s)
            UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
                const __m512 scale = load_meta<form>(panels[p] + meta_at, s * meta_vectors);
                UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
                    const __m512 factor = _mm512_mul_ps(scale, _mm512_set1_ps(a.x.scale[size_t{b} * COLUMNS + c]));
                    acc[p][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[s][p][c]), factor, acc[p][c]);
                }
                if constexpr (form.has_offset) {
                    const __m512 offset = load_meta<form>(panels[p] + meta_at, s * meta_vectors + 1);
                    UNROLL for (uint32_t c = 0; c < COLUMNS; ++c)
                        acc[p][c] = _mm512_fmadd_ps(offset, _mm512_set1_ps(a.x.scaled_sum[(size_t{b} * subs + s) * COLUMNS + c]), acc[p][c]);
                }
            }
    }
    UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
        const uint32_t row = (first_panel + p) * panel_rows;
        const __mmask16 mask = first_lanes(a.rows - row);
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
            float* out = a.out + c * a.out_stride + row;
            __m512 result = acc[p][c];
            if (a.add) result = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), result);
            _mm512_mask_storeu_ps(out, mask, result);
        }
    }
}

template <Form form_id>
INLINE __m512 load_weights(const std::byte* panel, size_t k) {
    if constexpr (form_id == Form::f32) return load(reinterpret_cast<const float*>(panel) + k * panel_rows).v;
    else if constexpr (form_id == Form::f16) return load_half(reinterpret_cast<const uint16_t*>(panel) + k * panel_rows).v;
    else return load_bfloat(reinterpret_cast<const uint16_t*>(panel) + k * panel_rows).v;
}

template <Form form_id, uint32_t PANELS, uint32_t COLUMNS>
void float_tile(const MatmulArgs& a, uint32_t first_panel) {
    const std::byte* panels[PANELS];
    UNROLL for (uint32_t p = 0; p < PANELS; ++p) panels[p] = a.panels + size_t{first_panel + p} * a.panel_bytes;
    __m512 acc[PANELS][COLUMNS];
    UNROLL for (uint32_t p = 0; p < PANELS; ++p)
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) acc[p][c] = _mm512_setzero_ps();
    const float* x = a.x.values;
    for (uint32_t k = 0; k < a.cols; ++k, x += COLUMNS) {
        __m512 weights[PANELS];
        UNROLL for (uint32_t p = 0; p < PANELS; ++p) weights[p] = load_weights<form_id>(panels[p], k);
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
            const __m512 value = _mm512_set1_ps(x[c]);
            UNROLL for (uint32_t p = 0; p < PANELS; ++p) acc[p][c] = _mm512_fmadd_ps(weights[p], value, acc[p][c]);
        }
    }
    UNROLL for (uint32_t p = 0; p < PANELS; ++p) {
        const uint32_t row = (first_panel + p) * panel_rows;
        const __mmask16 mask = first_lanes(a.rows - row);
        UNROLL for (uint32_t c = 0; c < COLUMNS; ++c) {
            float* out = a.out + c * a.out_stride + row;
            __m512 result = acc[p][c];
            if (a.add) result = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), result);
            _mm512_mask_storeu_ps(out, mask, result);
        }
    }
}

template <Form form_id, uint32_t PANELS, uint32_t COLUMNS>
INLINE void any_tile(const MatmulArgs& a, uint32_t first_panel) {
    if constexpr (info(form_id).sub_block != 0) integer_tile<form_id, PANELS, COLUMNS>(a, first_panel);
    else float_tile<form_id, PANELS, COLUMNS>(a, first_panel);
}

// Panels walked together for a tile of `columns`: enough chains (about 12) to hide the latency of the dots, few enough registers.
// Sub-blocks of 16 k have two integer accumulators an output.
constexpr uint32_t panels_for(Form form, uint32_t columns) {
    constexpr uint32_t whole[] = {0, 4, 4, 4, 3, 2, 2, 1, 1}, halves[] = {0, 4, 4, 2, 2, 1, 1, 1, 1};
    return info(form).sub_block == 16 ? halves[columns] : whole[columns];
}

template <Form form_id, uint32_t COLUMNS>
void columns_kernel(const MatmulArgs& a) {
    constexpr uint32_t together = panels_for(form_id, COLUMNS);
    uint32_t p = 0;
    for (; p + together <= a.n_panels; p += together) any_tile<form_id, together, COLUMNS>(a, p);
    if constexpr (together > 2) {
        if (p + 2 <= a.n_panels) {
            any_tile<form_id, 2, COLUMNS>(a, p);
            p += 2;
        }
    }
    for (; p < a.n_panels; ++p) any_tile<form_id, 1, COLUMNS>(a, p);
}

template <Form form_id>
void matmul(const MatmulArgs& a) {
    switch (a.x.columns) {
        case 1: return columns_kernel<form_id, 1>(a);
        case 2: return columns_kernel<form_id, 2>(a);
        case 3: return columns_kernel<form_id, 3>(a);
        case 4: return columns_kernel<form_id, 4>(a);
        case 5: return columns_kernel<form_id, 5>(a);
        case 6: return columns_kernel<form_id, 6>(a);
        case 7: return columns_kernel<form_id, 7>(a);
        default: return columns_kernel<form_id, 8>(a);
    }
}

}  // namespace

void install(KernelTable& table) {
    table.tile_columns = 8;
    table.tile_columns_many = 6;
    table.group_panels = 6;
#define X(id, bits, sub, offset, f32_meta) table.matmul[static_cast<size_t>(Form::id)] = matmul<Form::id>;
    KERNELS_INTEGER_FORMS(X)
#undef X
    table.matmul[static_cast<size_t>(Form::f32)] = matmul<Form::f32>;
    table.matmul[static_cast<size_t>(Form::f16)] = matmul<Form::f16>;
    table.matmul[static_cast<size_t>(Form::bf16)] = matmul<Form::bf16>;
    install_elementwise(table);
    install_attention(table);
}

}  // namespace kernels::cpu::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
