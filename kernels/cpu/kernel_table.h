// The cascade: scalar::install fills every entry, then each supported ISA overrides what it does better. A missing kernel
// is slower and never wrong. Every entry gives the same bits in every ISA: integer sums are exact, and the float
// steps are the same fused operations in the same order (16 lanes everywhere; scalar is the definition).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panel.h"

namespace kernels::cpu {

// Activations of one column tile, as matmul kernels read them. w = columns of the tile, 1 <= w <= max_tile_columns.
// Integer: every 32 values of a row have one fp32 scale and s8 codes in [-127, 127], in one or two levels:
//   value = scale * code              (1 level: 8 bits)
//   value = scale * (256 hi + lo)     (2 levels: 16 bits; hi is level 0)
// The integer sum of a block with 8-bit weights stays below 32 * 255 * (256 * 127 + 127) < 2^29.
struct ActivationTile {
    uint32_t columns = 0;               // w
    uint32_t levels = 1;
    const int8_t* codes = nullptr;      // (n_blocks, levels, w, 32)
    const float* scale = nullptr;       // (n_blocks, w)
    const float* scaled_sum = nullptr;  // (n_blocks, w), or (n_blocks, 2, w) by halves: scale * sum of the codes (of 256 hi + lo)
    const int32_t* minus_8_sum = nullptr;  // same shape: -8 * sum of the codes
    const float* values = nullptr;      // float forms: (cols, w)
};
inline constexpr uint32_t max_tile_columns = 12;
inline constexpr uint32_t group_panels_max = 8;  // panels that one matmul call gets, at most

struct MatmulArgs {
    const std::byte* panels = nullptr;  // the first panel
    size_t panel_bytes = 0, meta_offset = 0;
    uint32_t n_panels = 0;
    uint32_t n_blocks = 0;   // integer forms
    uint32_t cols = 0;       // float forms
    ActivationTile x;
    float* out = nullptr;    // column 0, row 0 of the first panel
    size_t out_stride = 0;   // floats from column to column
    uint32_t rows = 0;       // outputs wanted, <= 16 * n_panels, > 16 * (n_panels - 1)
    bool add = false;        // out += result
    bool prefetch = false;   // the panels behind these come next and are not in the cache
};
using MatmulKernel = void (*)(const MatmulArgs&);

// Where quantize writes a column tile; shapes as in ActivationTile.
struct CodeArrays {
    int8_t* codes = nullptr;
    float* scale = nullptr;
    float* scaled_sum = nullptr;           // by 32
    int32_t* minus_8_sum = nullptr;
    float* scaled_sum_halves = nullptr;    // by 16; null when no matrix wants it
    int32_t* minus_8_sum_halves = nullptr;
};

struct QuantizeArgs {
    const float* x = nullptr;  // (columns, stride)
    size_t stride = 0;
    uint32_t columns = 0;
    uint32_t n_blocks = 0;
    uint32_t levels = 1;
    CodeArrays out;
};

// Attention of a tile of query rows of one sequence, for the query heads of one KV head.
struct AttentionArgs {
    const float* q = nullptr;   // row 0, first query head of the group
    size_t q_stride = 0;        // floats from row to row
    float* out = nullptr;       // like q
    size_t out_stride = 0;
    uint32_t n_rows = 0;
    uint32_t n_group = 0;       // query heads of this KV head
    uint32_t head_dim = 0;
    uint32_t first_position = 0;  // of row 0; row r attends to positions [0, first_position + r]
    uint32_t window = 0;          // > 0: of those, to the last `window` only
    float soft_cap = 0;
    const std::byte* kv = nullptr;  // of (layer, block 0, KV head)
    size_t block_bytes = 0;         // from physical block to physical block
    const uint32_t* block_table = nullptr;
    float scale = 1;
    float* scratch = nullptr;       // attention_scratch_floats()
};

// One KV block of a (layer, KV head): K as 4 panels of 16 tokens, (4, head_dim, 16); then V, (64, head_dim_padded).
constexpr uint32_t padded_head_dim(uint32_t head_dim) { return (head_dim + 15) / 16 * 16; }
constexpr uint32_t attention_queries_max = 8;  // queries that a kernel body takes at once, at most
constexpr size_t attention_scratch_floats(uint32_t n_rows, uint32_t n_group, uint32_t head_dim) {
    return size_t{n_rows} * n_group * (padded_head_dim(head_dim) + 2) + attention_queries_max * (64 + padded_head_dim(head_dim) + 2);
}

struct StoreKvArgs {
    const float* k = nullptr;  // (head_dim)
    const float* v = nullptr;
    uint32_t head_dim = 0;
    uint32_t slot = 0;         // token within the block
    std::byte* block = nullptr;  // of (layer, block, KV head)
};

struct KernelTable {
    uint32_t tile_columns = 4;       // widest tile that the matmul kernels take, <= max_tile_columns
    uint32_t tile_columns_many = 4;  // the width to aim at when one tile is not enough
    uint32_t group_panels = 2;       // panels to walk together when there are several column tiles, <= group_panels_max
    MatmulKernel matmul[forms_count] = {};
    void (*quantize)(const QuantizeArgs&) = nullptr;
    void (*rms_norm)(const float* x, const float* weight, float eps, uint32_t n, float* out) = nullptr;
    void (*activate_mul[activations_count])(const float* gate, const float* up, float* out, size_t n) = {};  // by Activation
    void (*scale)(float* x, float factor, size_t n) = nullptr;
    void (*add_scaled)(float* x, const float* y, float factor, size_t n) = nullptr;  // x = fma(y, factor, x)
    void (*soft_cap)(float* x, float cap, size_t n) = nullptr;
    void (*add)(float* x, const float* y, size_t n) = nullptr;
    // By RopePairs. cos_sin: n_rot cosines, then n_rot sines, each sign in place.
    //   neighbours: cosines each twice, sines (-s, s): x'[i] = fma(x[i], c[i], x[i ^ 1] * s[i])
    //   halves: cosines and sines of the first half, then of the second (-s; s): the other dim is i +- n_rot / 2
    void (*rope[2])(float* x, uint32_t n_heads, uint32_t head_dim, uint32_t n_rot, const float* cos_sin) = {};
    void (*store_kv[2])(const StoreKvArgs&) = {};    // by KvType
    void (*attention[2])(const AttentionArgs&) = {};  // by KvType
};

namespace scalar { void install(KernelTable& table); }
#if defined(__x86_64__)
namespace avx2 { void install(KernelTable& table); }
namespace avx512 { void install(KernelTable& table); }
#endif

}  // namespace kernels::cpu
