// The verbs of a transformer over whole batches: the one interface of CPU and GPU. model/ calls them in the order of
// the paper and is the only place that knows the graph; a backend knows no model.
//
// Life: sizes (before anything is allocated) -> reserve() -> upload, add_rope, alloc -> any number of steps, each
// begin_step(), verbs, end_step(). One thread at a time; a step allocates nothing and cannot fail.
//
// Promise of every verb: what it writes for one row depends on that row (and, in attention, on its own sequence's KV)
// alone, bit for bit: never on the other rows, their number, the threads, or the physical blocks.
//
// A faster fused form is a wider verb: its default body (backend.cpp) calls the narrow ones and defines its result,
// to the bit; a backend overrides it when it has a kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/tensor.h"

namespace kernels {

class Backend {
  public:
    virtual ~Backend() = default;

    virtual std::string_view name() const = 0;  // "cpu/avx512"
    virtual uint32_t threads_count() const = 0;

    // --- sizes in bytes, known before anything is allocated -------------------------------------------------
    virtual uint64_t matrix_bytes(quant::Type type, uint64_t rows, uint64_t cols) const = 0;
    virtual uint64_t vector_bytes(uint64_t n) const = 0;
    virtual uint64_t tensor_bytes(uint64_t rows, uint64_t cols) const = 0;
    virtual uint64_t kv_block_bytes(const KvShape& shape) const = 0;     // one block of 64 tokens, all layers, K and V
    virtual uint64_t scratch_bytes(const StepShape& shape) const = 0;    // the backend's own working memory

    // --- load -----------------------------------------------------------------------------------------------
    // Takes all memory at once: `weight_bytes` for matrices and vectors, `tensor_bytes` for alloc(), the KV blocks and the
    // scratch. ErrorCode::io when the system refuses.
    virtual base::Result<void> reserve(uint64_t weight_bytes, uint64_t tensor_bytes, const KvShape& kv, uint32_t kv_blocks_count,
                                       const StepShape& step) = 0;
    // Repacks into the backend's own memory; afterwards nothing refers to `matrix.bytes`. A NaN or infinite weight or scale
    // is ErrorCode::bad_file, naming tensor, row, and byte offset.
    virtual base::Result<Matrix> upload(const HostMatrix& matrix) = 0;
    virtual base::Result<Vector> upload_vector(std::string_view name, std::span<const float> values) = 0;
    virtual uint32_t add_rope(const RopeSpec& spec) = 0;  // the id that rope() takes
    virtual Tensor alloc(uint32_t rows, uint32_t cols) = 0;  // zeroed; out of the reserved tensor bytes

    // --- a step ---------------------------------------------------------------------------------------------
    // Slices are disjoint, in row order, and cover all rows. They and their block tables stay valid until end_step().
    virtual void begin_step(std::span<const Slice> slices) = 0;
    virtual void end_step() = 0;                           // all results are complete and visible to the host
    virtual const float* host(const Tensor& x) const = 0;  // valid until the next begin_step()

    // out (n_rows, cols) = rows `tokens` of `table`, decoded.
    virtual void embed(const Matrix& table, std::span<const int32_t> tokens, Tensor out) = 0;
    // out = x / sqrt(mean(x^2) + eps) * weight, row by row. out may be x.
    virtual void rms_norm(Tensor x, Vector weight, float eps, Tensor out) = 0;
    // out (n, w.rows) = x (n, w.cols) W^T; with `add`, out += that.
    virtual void matmul(const Matrix& w, Tensor x, Tensor out, bool add) = 0;
    // Rotates, in place, each of the n_heads heads of x (n, n_heads * head_dim) by its row's position.
    virtual void rope(uint32_t rope_id, Tensor x, uint32_t n_heads) = 0;
    // k, v (n, n_kv_heads * head_dim) of the step's rows into the KV of `layer`, rounded to its type.
    virtual void store_kv(uint32_t layer, Tensor k, Tensor v) = 0;
    // out (n, n_heads * head_dim): causal attention of q over the stored KV, positions [0, own position] or the window's.
    virtual void attention(uint32_t layer, Tensor q, const AttentionSpec& spec, Tensor out) = 0;
    // out = f(gate) * up. out may be gate or up.
    virtual void activate_mul(Activation f, Tensor gate, Tensor up, Tensor out) = 0;
    virtual void add(Tensor x, Tensor y) = 0;                    // x += y
    virtual void add_bias(Tensor x, Vector bias) = 0;            // each row of x += bias
    virtual void scale(Tensor x, float factor) = 0;              // x *= factor
    virtual void soft_cap(Tensor x, float cap) = 0;              // x = cap * tanh(x / cap)
    // out row i = x row rows[i].
    virtual void gather_rows(Tensor x, std::span<const uint32_t> rows, Tensor out) = 0;

    // --- wider verbs ----------------------------------------------------------------------------------------
    struct Product {
        Matrix w;
        Tensor out;
    };
    // Several products of one input.
    virtual void matmul_many(Tensor x, std::span<const Product> products);
    // out = f(x Wgate^T) * (x Wup^T). `spare` has the shape of out and is clobbered.
    virtual void gated(Activation f, const Matrix& gate, const Matrix& up, Tensor x, Tensor spare, Tensor out);
    struct Expert {
        Matrix gate, up;  // (n_ff, n_embd)
        Matrix down;      // (n_embd, n_ff)
    };
    // Working memory of experts(), as large as for one expert that takes every row.
    struct ExpertBuffers {
        Tensor scores;         // (n, experts)
        Tensor x, y;           // (n, n_embd)
        Tensor hidden, spare;  // (n, n_ff)
    };
    // out += sum over a row's experts, in ascending order of index, of weight * down(f(gate(x)) * up(x)). The experts and
    // weights of a row come from the router's scores for it alone.
    virtual void experts(const ExpertsSpec& spec, const Matrix& router, std::span<const Expert> all, Tensor x, const ExpertBuffers& buffers, Tensor out) = 0;
};

}  // namespace kernels
