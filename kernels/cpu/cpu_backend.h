// The CPU backend: owns weights (panels), activations, KV and scratch; splits every verb over its pool and calls the
// KernelTable. Load: cpu_backend.cpp. Products: cpu_matmul.cpp. The other verbs: cpu_step.cpp, cpu_experts.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/arena.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/pool.h"

namespace kernels::cpu {

class CpuBackend final : public Backend {
  public:
    CpuBackend(std::string_view isa, const KernelTable& table, const CpuOptions& options, uint32_t threads);

    std::string_view name() const override { return name_; }
    uint32_t threads_count() const override { return pool_.threads(); }

    uint64_t matrix_bytes(quant::Type type, uint64_t rows, uint64_t cols) const override;
    uint64_t vector_bytes(uint64_t n) const override;
    uint64_t tensor_bytes(uint64_t rows, uint64_t cols) const override;
    uint64_t kv_block_bytes(const KvShape& shape) const override;
    uint64_t scratch_bytes(const StepShape& shape) const override;

    base::Result<void> reserve(uint64_t weight_bytes, uint64_t tensor_bytes, const KvShape& kv, uint32_t kv_blocks_count,
                               const StepShape& step) override;
    base::Result<Matrix> upload(const HostMatrix& matrix) override;
    base::Result<Vector> upload_vector(std::string_view name, std::span<const float> values) override;
    uint32_t add_rope(const RopeSpec& spec) override;
    Tensor alloc(uint32_t rows, uint32_t cols) override;

    void begin_step(std::span<const Slice> slices) override;
    void end_step() override;
    const float* host(const Tensor& x) const override { return x.data; }

    void embed(const Matrix& table, std::span<const int32_t> tokens, Tensor out) override;
    void rms_norm(Tensor x, Vector weight, float eps, Tensor out) override;
    void matmul(const Matrix& w, Tensor x, Tensor out, bool add) override;
    void rope(uint32_t rope_id, Tensor x, uint32_t n_heads) override;
    void store_kv(uint32_t layer, Tensor k, Tensor v) override;
    void attention(uint32_t layer, Tensor q, const AttentionSpec& spec, Tensor out) override;
    void activate_mul(Activation f, Tensor gate, Tensor up, Tensor out) override;
    void add(Tensor x, Tensor y) override;
    void add_bias(Tensor x, Vector bias) override;
    void scale(Tensor x, float factor) override;
    void soft_cap(Tensor x, float cap) override;
    void gather_rows(Tensor x, std::span<const uint32_t> rows, Tensor out) override;
    void matmul_many(Tensor x, std::span<const Product> products) override;
    void gated(Activation f, const Matrix& gate, const Matrix& up, Tensor x, Tensor spare, Tensor out) override;
    void experts(const ExpertsSpec& spec, const Matrix& router, std::span<const Expert> all, Tensor x, const ExpertBuffers& buffers, Tensor out) override;

  private:
    // Columns of a step cut into tiles of nearly equal width, at most KernelTable::tile_columns.
    struct Tiles {
        uint32_t columns = 0, count = 0, width = 0, wider = 0;  // the first `wider` tiles are width + 1
        uint32_t start(uint32_t i) const { return i * width + (i < wider ? i : wider); }
        uint32_t columns_of(uint32_t i) const { return width + (i < wider ? 1 : 0); }
    };
    struct Needs { bool codes = false, halves = false, values = false; };
    struct Rope {
        RopePairs pairs = RopePairs::neighbours;
        uint32_t n_rot = 0;
        double magnitude = 1;
        std::vector<double> frequencies;  // (n_rot / 2), radians per position
        float* cos_sin = nullptr;         // (rows_max, 2 n_rot)
    };
    // Query rows [first_row, first_row + n_rows) of one slice, taken together in attention.
    struct AttentionUnit { uint32_t first_row, n_rows, first_position; const uint32_t* block_table; };

    size_t activation_bytes(const StepShape& shape) const;
    static size_t thread_scratch_floats(const StepShape& shape);
    static uint32_t attention_rows(const StepShape& shape);

    Tiles tiles_of(uint32_t columns) const;
    void add_needs(const Matrix& w, Needs& needs) const;
    void prepare(Tensor x, const Tiles& tiles, Needs needs);
    void point_at(ActivationTile& tile, const PanelMatrix& w, const Tiles& tiles, uint32_t i) const;
    void multiply(const PanelMatrix& w, uint32_t first_panel, uint32_t n_panels, const Tiles& tiles, uint32_t tile, float* out, size_t out_stride, bool add) const;
    void multiply_panels(const PanelMatrix& w, uint32_t first_panel, uint32_t last_panel, const Tiles& tiles, Tensor out, bool add) const;
    uint32_t group_of(const Tiles& tiles) const;
    uint32_t chunks_for(uint64_t units, uint64_t work) const;
    void check_input(const Matrix& w, const Tensor& x, const Tensor& out) const;
    // body(row) for all rows, `work` = rough nanoseconds of a row.
    template <typename Body>
    void for_rows(uint32_t n, uint32_t row_ns, Body body) {
        constexpr uint32_t chunk_ns = 3000;  // ten times what handing out a chunk costs
        const uint32_t rows = row_ns >= chunk_ns ? 1 : chunk_ns / row_ns;
        const uint32_t chunks = (n + rows - 1) / rows;
        pool_.run(chunks, [&](uint32_t chunk, uint32_t) {
            const uint32_t last = chunk + 1 == chunks ? n : (chunk + 1) * rows;
            for (uint32_t row = chunk * rows; row < last; ++row) body(row);
        });
    }

    const std::string name_;
    const KernelTable table_;
    const uint32_t levels_;  // of activation codes: 1 = 8 bits, 2 = 16 bits
    Pool pool_;

    // Fixed at load.
    Arena weights_arena_, tensors_arena_, kv_arena_, scratch_arena_;
    std::vector<PanelMatrix> matrices_;
    std::vector<Rope> ropes_;
    KvShape kv_;
    StepShape step_;
    uint32_t kv_blocks_count_ = 0;
    size_t kv_head_bytes_ = 0;   // K and V of one (layer, block, KV head)

    // Scratch, sized for the largest step.
    CodeArrays codes_;                     // one tile after another, each (n_blocks, levels, w, 32)
    float* values_ = nullptr;              // one tile after another, each (cols, w)
    float* thread_scratch_ = nullptr;      // (threads, thread_scratch_floats)

    // The running step.
    std::optional<FloatMode> float_mode_;
    std::span<const Slice> slices_;
    uint32_t n_rows_ = 0;
    std::vector<uint32_t> positions_;        // (rows_max)
    std::vector<const uint32_t*> tables_;    // (rows_max) block table of the row's sequence
    std::vector<AttentionUnit> units_;       // capacity rows_max
    struct Chosen { uint32_t expert; float weight; };
    struct Choice { uint32_t row; float weight; };
    std::vector<Chosen> chosen_;             // of experts(): capacity rows_max * n_experts_used_max, by row
    std::vector<Choice> choices_;            // the same by expert
    std::vector<uint32_t> expert_ends_;      // capacity n_experts_max
    uint64_t attention_tokens_ = 0;          // sum over rows of the tokens they see
};

}  // namespace kernels::cpu
