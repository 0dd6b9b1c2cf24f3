#include "kernels/cpu/panel.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "quant/codec.h"

namespace kernels::cpu {
namespace {

using quant::Codec;
using quant::Type;

bool finite(float value) { return std::isfinite(value); }

void put_meta(const FormInfo& form, std::byte* at, uint32_t index, float value) {
    if (form.f32_meta) {
        std::memcpy(at + size_t{index} * 4, &value, 4);
    } else {
        const uint16_t half = quant::f32_to_f16(value);  // exact: it was an f16 in the file
        std::memcpy(at + size_t{index} * 2, &half, 2);
    }
}

float get_meta(const FormInfo& form, const std::byte* at, uint32_t index) {
    if (form.f32_meta) {
        float value;
        std::memcpy(&value, at + size_t{index} * 4, 4);
        return value;
    }
    uint16_t half;
    std::memcpy(&half, at + size_t{index} * 2, 2);
    return quant::f16_to_f32(half);
}

// The codes of one block of 32 k, in k order, stored form (code + 8 and so on), into lane `lane`.
void put_codes(const FormInfo& form, std::byte* block, uint32_t lane, const uint8_t* codes) {
    if (form.code_bits == 4) {
        for (uint32_t g = 0; g < 4; ++g)
            for (uint32_t j = 0; j < 4; ++j)
                block[g * 64 + lane * 4 + j] = static_cast<std::byte>(codes[4 * g + j] | codes[16 + 4 * g + j] << 4);
    } else {
        for (uint32_t g = 0; g < 8; ++g) std::memcpy(block + g * 64 + lane * 4, codes + 4 * g, 4);
    }
}

template <Type type>
void put_codes_of(const FormInfo& form, std::byte* block, uint32_t lane, const typename Codec<type>::Block& source, uint32_t first) {
    if constexpr (type == Type::q4_0 || type == Type::q4_1) {
        // The file's nibble order is the panel's: w[j] low, w[j + 16] high.
        for (uint32_t g = 0; g < 4; ++g) std::memcpy(block + g * 64 + lane * 4, source.qs + 4 * g, 4);
    } else if constexpr (type == Type::q8_0) {
        for (uint32_t g = 0; g < 8; ++g) {
            uint32_t four;
            std::memcpy(&four, source.qs + 4 * g, 4);
            four ^= 0x80808080u;  // s8 to code + 128
            std::memcpy(block + g * 64 + lane * 4, &four, 4);
        }
    } else {
        const int bias = form.has_offset ? 0 : form.code_bits == 4 ? 8 : 128;
        uint8_t codes[block_k];
        for (uint32_t k = 0; k < block_k; ++k) codes[k] = static_cast<uint8_t>(Codec<type>::code(source, first + k) + bias);
        put_codes(form, block, lane, codes);
    }
}

template <Type type>
bool fill_row(const PanelMatrix& shape, std::byte* panel, uint32_t lane, const std::byte* row) {
    using Block = typename Codec<type>::Block;
    constexpr uint32_t elements = quant::info(type).block_elements;
    const auto* blocks = reinterpret_cast<const Block*>(row);  // packed, so any address will do
    const FormInfo& form = info(shape.form);
    const uint32_t subs = block_k / form.sub_block;
    bool sound = true;
    for (uint32_t b = 0; b < shape.n_blocks; ++b) {
        const Block& source = blocks[b * block_k / elements];
        const uint32_t first = b * block_k % elements;
        put_codes_of<type>(form, panel + size_t{b} * form.codes_block_bytes(), lane, source, first);
        std::byte* meta = panel + shape.meta_offset + size_t{b} * form.meta_block_bytes();
        for (uint32_t s = 0; s < subs; ++s) {
            const uint32_t i = first + s * form.sub_block;
            const uint32_t at = s * panel_rows * (form.has_offset ? 2 : 1) + lane;
            const float scale = Codec<type>::scale(source, i);
            sound &= finite(scale);
            put_meta(form, meta, at, scale);
            if constexpr (Codec<type>::has_offset) {
                const float offset = Codec<type>::offset(source, i);
                sound &= finite(offset);
                put_meta(form, meta, at + panel_rows, offset);
            }
        }
    }
    return sound;
}

template <typename Element>
bool fill_float_row(const PanelMatrix& shape, std::byte* panel, uint32_t lane, const std::byte* row, uint32_t exponent_mask) {
    bool sound = true;
    for (uint32_t k = 0; k < shape.cols; ++k) {
        Element bits;
        std::memcpy(&bits, row + size_t{k} * sizeof bits, sizeof bits);
        sound &= (bits & exponent_mask) != exponent_mask;
        std::memcpy(panel + (size_t{k} * panel_rows + lane) * sizeof bits, &bits, sizeof bits);
    }
    return sound;
}

bool fill_any_row(const PanelMatrix& shape, std::byte* panel, uint32_t lane, const std::byte* row) {
    switch (shape.type) {
        case Type::f32: return fill_float_row<uint32_t>(shape, panel, lane, row, 0x7f800000u);
        case Type::f16: return fill_float_row<uint16_t>(shape, panel, lane, row, 0x7c00u);
        case Type::bf16: return fill_float_row<uint16_t>(shape, panel, lane, row, 0x7f80u);
        case Type::q4_0: return fill_row<Type::q4_0>(shape, panel, lane, row);
        case Type::q4_1: return fill_row<Type::q4_1>(shape, panel, lane, row);
        case Type::q5_0: return fill_row<Type::q5_0>(shape, panel, lane, row);
        case Type::q5_1: return fill_row<Type::q5_1>(shape, panel, lane, row);
        case Type::q8_0: return fill_row<Type::q8_0>(shape, panel, lane, row);
        case Type::q2_k: return fill_row<Type::q2_k>(shape, panel, lane, row);
        case Type::q3_k: return fill_row<Type::q3_k>(shape, panel, lane, row);
        case Type::q4_k: return fill_row<Type::q4_k>(shape, panel, lane, row);
        case Type::q5_k: return fill_row<Type::q5_k>(shape, panel, lane, row);
        case Type::q6_k: return fill_row<Type::q6_k>(shape, panel, lane, row);
        case Type::iq4_nl: return fill_row<Type::iq4_nl>(shape, panel, lane, row);
        case Type::iq4_xs: return fill_row<Type::iq4_xs>(shape, panel, lane, row);
    }
    CHECK(false);
}

}  // namespace

Form form_of(Type type) {
    switch (type) {
        case Type::f32: return Form::f32;
        case Type::f16: return Form::f16;
        case Type::bf16: return Form::bf16;
        case Type::q4_0: return Form::q4;
        case Type::q4_1: return Form::q4_m;
        case Type::q4_k: return Form::q4_mf;
        case Type::q3_k: return Form::q4_hf;
        case Type::q2_k: return Form::q4_hmf;
        case Type::q5_0:
        case Type::q8_0:
        case Type::iq4_nl: return Form::q8;
        case Type::q5_1: return Form::q8_m;
        case Type::iq4_xs: return Form::q8_f;
        case Type::q5_k: return Form::q8_mf;
        case Type::q6_k: return Form::q8_hf;
    }
    CHECK(false);
}

PanelMatrix panel_shape(Type type, uint64_t rows, uint64_t cols) {
    CHECK_EQ(cols % quant::info(type).block_elements, 0u);
    CHECK(rows > 0 && cols > 0 && rows <= UINT32_MAX - panel_rows && cols <= UINT32_MAX / 64);
    PanelMatrix m;
    m.type = type;
    m.form = form_of(type);
    m.rows = static_cast<uint32_t>(rows);
    m.cols = static_cast<uint32_t>(cols);
    m.n_panels = (m.rows + panel_rows - 1) / panel_rows;
    const FormInfo& form = info(m.form);
    if (form.integer()) {
        m.n_blocks = m.cols / block_k;
        m.meta_offset = size_t{m.n_blocks} * form.codes_block_bytes();  // a multiple of 256
        m.panel_bytes = m.meta_offset + size_t{m.n_blocks} * form.meta_block_bytes();
    } else {
        m.meta_offset = size_t{m.cols} * panel_rows * form.code_bits / 8;
        m.panel_bytes = m.meta_offset;
    }
    m.panel_bytes = (m.panel_bytes + 63) & ~size_t{63};
    return m;
}

int64_t fill_panels(const PanelMatrix& shape, std::byte* out, const std::byte* rows, uint32_t first, uint32_t last) {
    const uint64_t row_bytes = quant::row_bytes(shape.type, shape.cols);
    int64_t bad = -1;
    for (uint32_t p = first; p < last; ++p) {
        std::byte* panel = out + size_t{p} * shape.panel_bytes;
        const uint32_t n = shape.rows - p * panel_rows < panel_rows ? shape.rows - p * panel_rows : panel_rows;
        if (n < panel_rows) std::memset(panel, 0, shape.panel_bytes);
        for (uint32_t lane = 0; lane < n; ++lane) {
            const uint64_t row = uint64_t{p} * panel_rows + lane;
            if (!fill_any_row(shape, panel, lane, rows + row * row_bytes) && bad < 0) bad = static_cast<int64_t>(row);
        }
    }
    return bad;
}

void decode_row(const PanelMatrix& m, uint32_t row, float* out) {
    const FormInfo& form = info(m.form);
    const std::byte* panel = m.data + size_t{row / panel_rows} * m.panel_bytes;
    const uint32_t lane = row % panel_rows;
    if (!form.integer()) {
        for (uint32_t k = 0; k < m.cols; ++k) {
            const std::byte* at = panel + (size_t{k} * panel_rows + lane) * form.code_bits / 8;
            if (m.form == Form::f32) {
                std::memcpy(out + k, at, 4);
            } else {
                uint16_t half;
                std::memcpy(&half, at, 2);
                out[k] = m.form == Form::f16 ? quant::f16_to_f32(half) : quant::bf16_to_f32(half);
            }
        }
        return;
    }
    const int bias = form.has_offset ? 0 : form.code_bits == 4 ? 8 : 128;
    for (uint32_t b = 0; b < m.n_blocks; ++b) {
        const std::byte* codes = panel + size_t{b} * form.codes_block_bytes();
        const std::byte* meta = panel + m.meta_offset + size_t{b} * form.meta_block_bytes();
        for (uint32_t k = 0; k < block_k; ++k) {
            const uint32_t s = k / form.sub_block, at = s * panel_rows * (form.has_offset ? 2 : 1) + lane;
            const uint32_t j = k % 16;
            const int code = form.code_bits == 4 ? std::to_integer<int>(codes[j / 4 * 64 + lane * 4 + j % 4]) >> (k < 16 ? 0 : 4) & 15
                                                 : std::to_integer<int>(codes[k / 4 * 64 + lane * 4 + k % 4]);
            const float product = get_meta(form, meta, at) * static_cast<float>(code - bias);
            out[b * block_k + k] = form.has_offset ? product + get_meta(form, meta, at + panel_rows) : product;
        }
    }
}

}  // namespace kernels::cpu
