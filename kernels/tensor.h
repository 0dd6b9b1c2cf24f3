// The nouns that the verbs of backend.h work on: plain views and handles, no ownership.
#pragma once

#include <cstdint>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "quant/types.h"

namespace kernels {

// Activations, fp32, row-major, one row a token. `data` lies in the backend's memory (device memory for a GPU),
// so only the backend touches it; host() gives the host's view after end_step().
struct Tensor {
    float* data = nullptr;  // (rows, cols)
    uint32_t rows = 0;
    uint32_t cols = 0;

    // The same memory seen as its first n rows.
    Tensor first(uint32_t n) const {
        CHECK_LE(n, rows);
        return {data, n, cols};
    }
};

// An uploaded weight matrix: y[rows] = W x[cols]. A handle into the backend that made it.
struct Matrix {
    uint32_t index = 0;
    uint32_t rows = 0;  // outputs
    uint32_t cols = 0;  // inputs, the length of a row in the file
    quant::Type type = quant::Type::f32;
};

// An uploaded fp32 vector (a norm's weights), in the backend's memory.
struct Vector {
    const float* data = nullptr;  // (n)
    uint32_t n = 0;
};

// A weight matrix as it lies in the file: `rows` rows of quant::row_bytes(type, cols) bytes.
struct HostMatrix {
    std::string_view name;  // for messages
    quant::Type type = quant::Type::f32;
    uint64_t rows = 0;
    uint64_t cols = 0;
    std::span<const std::byte> bytes;
    uint64_t offset = 0;  // byte offset of `bytes` in the file, for messages
};

// How keys and values are stored. f32 is for checks.
enum class KvType : uint8_t { f16, f32 };
constexpr std::string_view name(KvType type) { return type == KvType::f16 ? "f16" : "f32"; }
constexpr uint32_t element_bytes(KvType type) { return type == KvType::f16 ? 2 : 4; }

struct KvShape {
    uint32_t n_layers = 0;
    uint32_t n_kv_heads = 0;
    uint32_t head_dim = 0;
    KvType type = KvType::f16;
};

// What the largest step needs; scratch is allocated for it once.
struct StepShape {
    uint32_t rows_max = 0;        // rows of a step
    uint32_t cols_max = 0;        // the widest input of a matmul
    uint32_t n_heads = 0;
    uint32_t n_kv_heads = 0;
    uint32_t head_dim = 0;
    uint32_t n_ropes = 1;         // add_rope() calls to come
};

// Rotation of pairs (2i, 2i+1) by position * freq_scale * freq_base^(-2i / n_rot) / freq_factors[i].
struct RopeSpec {
    uint32_t n_rot = 0;                // leading dims of a head that rotate; even, <= head_dim
    double freq_base = 10000;
    double freq_scale = 1;             // linear scaling: 1 / factor
    std::vector<float> freq_factors;   // (n_rot / 2), or empty
};

// The part of a step that belongs to one sequence; as model::SequenceSlice.
struct Slice {
    uint32_t first_row = 0;
    uint32_t n_rows = 0;
    uint32_t start_position = 0;
    std::span<const uint32_t> block_table;  // block i holds positions [64 i, 64 i + 64)
};

}  // namespace kernels
