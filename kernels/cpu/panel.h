// Weights as the CPU kernels read them: panels of 16 rows, lane = row. One vector holds 4 consecutive k of 16 rows, so a
// load feeds 16 outputs, there are no horizontal sums, and every output has its own accumulator: the order of reduction
// is the same for one column and for many, and the same in every ISA.
//
// Integer forms. A block is 32 consecutive k; group g = 0..7 is k 4g..4g+3 of the block; lane r is row r of the panel.
//   codes, 4 bits: 256 bytes a block: for g in 0..3, r in 0..15, j in 0..3 the byte with
//                  lo = code of k = 4g + j and hi = code of k = 16 + 4g + j
//   codes, 8 bits: 512 bytes a block: for g in 0..7, r in 0..15, j in 0..3 the byte of k = 4g + j
//   meta: for each sub-block (32 or 16 k): 16 scales, then, if the form has offsets, 16 offsets; f16 or f32
// A panel = codes of all blocks, then meta of all blocks. Symmetric forms store code + 8 (4 bits) or code + 128 (8 bits);
// forms with an offset store the unsigned code itself. Every type of quant/types.h fits one form exactly: nothing is
// rounded on the way. (Types of 2, 3, 5 and 6 bits grow; their own panels are a matter of speed, not of values.)
//
// Float forms: for k in 0..cols-1, r in 0..15 the element, as f32, f16 or bf16.
// Rows beyond the matrix are zero codes with zero scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "kernels/tensor.h"

namespace kernels::cpu {

inline constexpr uint32_t panel_rows = 16;
inline constexpr uint32_t block_k = 32;

//        id        code bits, sub-block, has offset, f32 meta
#define KERNELS_INTEGER_FORMS(X)  \
    X(q4,        4, 32, false, false) /* Q4_0 */               \
    X(q4_m,      4, 32, true,  false) /* Q4_1 */               \
    X(q4_mf,     4, 32, true,  true)  /* Q4_K */               \
    X(q4_hf,     4, 16, false, true)  /* Q3_K */               \
    X(q4_hmf,    4, 16, true,  true)  /* Q2_K */               \
    X(q8,        8, 32, false, false) /* Q8_0 Q5_0 IQ4_NL */   \
    X(q8_m,      8, 32, true,  false) /* Q5_1 */               \
    X(q8_f,      8, 32, false, true)  /* IQ4_XS */             \
    X(q8_mf,     8, 32, true,  true)  /* Q5_K */               \
    X(q8_hf,     8, 16, false, true)  /* Q6_K */

enum class Form : uint8_t {
#define X(id, bits, sub, offset, f32_meta) id,
    KERNELS_INTEGER_FORMS(X)
#undef X
    f32, f16, bf16,
};
inline constexpr uint32_t forms_count = static_cast<uint32_t>(Form::bf16) + 1;
inline constexpr uint32_t integer_forms_count = static_cast<uint32_t>(Form::f32);

struct FormInfo {
    uint32_t code_bits;   // 4 or 8; a float form: bits of an element
    uint32_t sub_block;   // k that share a scale: 32 or 16; a float form: 0
    bool has_offset;
    bool f32_meta;
    constexpr bool integer() const { return sub_block != 0; }
    constexpr uint32_t codes_block_bytes() const { return block_k * panel_rows * code_bits / 8; }
    constexpr uint32_t meta_block_bytes() const {
        return block_k / sub_block * panel_rows * (has_offset ? 2u : 1u) * (f32_meta ? 4u : 2u);
    }
};
inline constexpr FormInfo form_infos[forms_count] = {
#define X(id, bits, sub, offset, f32_meta) {bits, sub, offset, f32_meta},
    KERNELS_INTEGER_FORMS(X)
#undef X
    {32, 0, false, false}, {16, 0, false, false}, {16, 0, false, false},
};
constexpr const FormInfo& info(Form form) { return form_infos[static_cast<size_t>(form)]; }

Form form_of(quant::Type type);

// A repacked matrix; `data` is 64-byte aligned and so is every panel.
struct PanelMatrix {
    const std::byte* data = nullptr;
    Form form = Form::f32;
    quant::Type type = quant::Type::f32;
    uint32_t rows = 0, cols = 0;
    uint32_t n_panels = 0;
    uint32_t n_blocks = 0;    // of 32 k; integer forms
    size_t panel_bytes = 0;   // from panel to panel
    size_t meta_offset = 0;   // of meta inside a panel
};

// The geometry, with data = null. cols is a multiple of quant's block_elements for the type (CHECKed).
PanelMatrix panel_shape(quant::Type type, uint64_t rows, uint64_t cols);
inline uint64_t panel_matrix_bytes(const PanelMatrix& m) { return uint64_t{m.n_panels} * m.panel_bytes; }

// Fills panels [first, last) of `out` (geometry `shape`) from the file's rows. Returns the first row with a NaN or infinite
// weight or scale, or -1. Pure; panels may be filled by several threads.
int64_t fill_panels(const PanelMatrix& shape, std::byte* out, const std::byte* rows, uint32_t first, uint32_t last);

// out (cols) = row `row` decoded: the same bits as quant::dequantize_row of the file's row.
void decode_row(const PanelMatrix& m, uint32_t row, float* out);

}  // namespace kernels::cpu
