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
    std::string_view file = {};  // printable name of that file when a model has several
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
    uint32_t n_experts = 0;       // of a mixture, and how many a row uses
    uint32_t n_experts_used = 0;
};

// Which two dims of a head turn together, of the n_rot leading ones.
enum class RopePairs : uint8_t { neighbours, halves };  // (2i, 2i + 1), or (i, i + n_rot / 2)

// Pair i of a head at position p turns by the angle p * frequencies[i]; cosine and sine are multiplied by `magnitude`.
struct RopeSpec {
    RopePairs pairs = RopePairs::neighbours;
    std::vector<double> frequencies;  // (n_rot / 2), radians per position; 1 <= n_rot / 2 <= head_dim / 2
    double magnitude = 1;
};

// The gate's function in a gated feed-forward: x / (1 + exp(-x)), or gelu in its tanh form
// (Hendrycks and Gimpel 2016): x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))).
enum class Activation : uint8_t { silu, gelu_tanh };
inline constexpr uint32_t activations_count = 2;

struct AttentionSpec {
    float scale = 1;
    float soft_cap = 0;   // > 0: a score s becomes soft_cap * tanh(s / soft_cap)
    uint32_t window = 0;  // > 0: a row sees itself and the window - 1 positions before it
};

// How a mixture of experts is chosen and weighed: softmax over all scores, the n_used best (the lower index first among
// equals), their weights divided by their sum when `normalise`.
inline constexpr uint32_t experts_used_max = 64;
struct ExpertsSpec {
    uint32_t n_used = 1;
    bool normalise = true;
    Activation activation = Activation::silu;
};

// The part of a step that belongs to one sequence; as model::SequenceSlice.
struct Slice {
    uint32_t first_row = 0;
    uint32_t n_rows = 0;
    uint32_t start_position = 0;
    std::span<const uint32_t> block_table;  // block i holds positions [64 i, 64 i + 64)
};

}  // namespace kernels
