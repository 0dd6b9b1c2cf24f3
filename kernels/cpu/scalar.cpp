// The definition of every kernel, and the fallback of every machine.
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd_scalar.h"

namespace kernels::cpu::scalar {
namespace {

#include "kernels/cpu/generic/elementwise.h"
#include "kernels/cpu/generic/attention.h"

float meta_at(const FormInfo& form, const std::byte* meta, uint32_t index) {
    if (form.f32_meta) {
        float value;
        std::memcpy(&value, meta + size_t{index} * 4, 4);
        return value;
    }
    uint16_t half;
    std::memcpy(&half, meta + size_t{index} * 2, 2);
    return quant::f16_to_f32(half);
}

// One output: blocks ascending, sub-blocks ascending; exact integer sum, then
//   acc = fma(float(sum), scale_w * scale_x, acc), and with an offset  acc = fma(offset, scaled_sum, acc).
template <Form form_id>
void matmul_integer(const MatmulArgs& a) {
    constexpr FormInfo form = info(form_id);
    constexpr uint32_t subs = block_k / form.sub_block, meta_step = panel_rows * (form.has_offset ? 2 : 1);
    const uint32_t w = a.x.columns;
    for (uint32_t p = 0; p < a.n_panels; ++p) {
        const std::byte* panel = a.panels + size_t{p} * a.panel_bytes;
        const uint32_t rows = a.rows - p * panel_rows < panel_rows ? a.rows - p * panel_rows : panel_rows;
        for (uint32_t c = 0; c < w; ++c) {
            float acc[panel_rows] = {};
            for (uint32_t b = 0; b < a.n_blocks; ++b) {
                const auto* codes = reinterpret_cast<const uint8_t*>(panel + size_t{b} * form.codes_block_bytes());
                const std::byte* meta = panel + a.meta_offset + size_t{b} * form.meta_block_bytes();
                int32_t x[block_k];  // 8 or 16 bits
                const int8_t* level = a.x.codes + (size_t{b} * a.x.levels * w + c) * block_k;
                for (uint32_t k = 0; k < block_k; ++k) x[k] = a.x.levels == 1 ? level[k] : 256 * level[k] + level[size_t{w} * block_k + k];
                const float scale = a.x.scale[size_t{b} * w + c];
                int32_t sums[2][panel_rows] = {};
                for (uint32_t g = 0; g < 8; ++g) {
                    const uint8_t* group = codes + (form.code_bits == 4 ? g % 4 : g) * 64;
                    const uint32_t shift = form.code_bits == 4 && g >= 4 ? 4 : 0, mask = form.code_bits == 4 ? 15 : 255;
                    int32_t* sum = sums[subs == 2 && g >= 4];
                    for (uint32_t r = 0; r < panel_rows; ++r)
                        for (uint32_t j = 0; j < 4; ++j) sum[r] += static_cast<int32_t>(group[r * 4 + j] >> shift & mask) * x[4 * g + j];
                }
                for (uint32_t s = 0; s < subs; ++s) {
                    const size_t at = (size_t{b} * subs + s) * w + c;
                    const int32_t bias = form.has_offset ? 0 : a.x.minus_8_sum[at] * (form.code_bits == 4 ? 1 : 16);
                    for (uint32_t r = 0; r < panel_rows; ++r) {
                        const float factor = meta_at(form, meta, s * meta_step + r) * scale;
                        acc[r] = std::fma(static_cast<float>(sums[s][r] + bias), factor, acc[r]);
                        if constexpr (form.has_offset)
                            acc[r] = std::fma(meta_at(form, meta, s * meta_step + panel_rows + r), a.x.scaled_sum[at], acc[r]);
                    }
                }
            }
            float* out = a.out + c * a.out_stride + size_t{p} * panel_rows;
            for (uint32_t r = 0; r < rows; ++r) out[r] = a.add ? out[r] + acc[r] : acc[r];
        }
    }
}

// One output: k ascending in one fused chain.
template <Form form_id>
void matmul_float(const MatmulArgs& a) {
    constexpr uint32_t element = info(form_id).code_bits / 8;
    const uint32_t w = a.x.columns;
    for (uint32_t p = 0; p < a.n_panels; ++p) {
        const std::byte* panel = a.panels + size_t{p} * a.panel_bytes;
        const uint32_t rows = a.rows - p * panel_rows < panel_rows ? a.rows - p * panel_rows : panel_rows;
        for (uint32_t c = 0; c < w; ++c) {
            V acc = set1(0.0f);
            for (uint32_t k = 0; k < a.cols; ++k) {
                const std::byte* at = panel + size_t{k} * panel_rows * element;
                V weights;
                if constexpr (form_id == Form::f32) weights = load(reinterpret_cast<const float*>(at));
                else if constexpr (form_id == Form::f16) weights = load_half(reinterpret_cast<const uint16_t*>(at));
                else weights = load_bfloat(reinterpret_cast<const uint16_t*>(at));
                acc = fma(weights, set1(a.x.values[size_t{k} * w + c]), acc);
            }
            float* out = a.out + c * a.out_stride + size_t{p} * panel_rows;
            for (uint32_t r = 0; r < rows; ++r) out[r] = a.add ? out[r] + acc.lane[r] : acc.lane[r];
        }
    }
}

}  // namespace

void install(KernelTable& table) {
    table.tile_columns = table.tile_columns_many = 4;
    table.group_panels = 2;
#define X(id, bits, sub, offset, f32_meta) table.matmul[static_cast<size_t>(Form::id)] = matmul_integer<Form::id>;
    KERNELS_INTEGER_FORMS(X)
#undef X
    table.matmul[static_cast<size_t>(Form::f32)] = matmul_float<Form::f32>;
    table.matmul[static_cast<size_t>(Form::f16)] = matmul_float<Form::f16>;
    table.matmul[static_cast<size_t>(Form::bf16)] = matmul_float<Form::bf16>;
    install_elementwise(table);
    install_attention(table);
}

}  // namespace kernels::cpu::scalar
