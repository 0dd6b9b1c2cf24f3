#include "kernels/cpu/cpu_backend.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <system_error>

#include "base/check.h"
#include "base/limits.h"
#include "base/message.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/select.h"
#include "kernels/cpu/threads.h"
#include "quant/types.h"

namespace kernels::cpu {

static_assert(limits::kv_block_tokens == 64, "generic/attention.h reduces over blocks of 64 tokens");

base::Result<std::unique_ptr<Backend>> create(const CpuOptions& options) {
    base::Result<const IsaRow*> row = select_isa(options.isa);
    if (!row) return row.take_error();
    const uint32_t threads = options.threads == 0 ? count_cpus().threads : options.threads;
    if (threads > threads_max)
        return base::Error{base::ErrorCode::invalid_argument, "threads is " + std::to_string(threads) + "; allowed: 1 to " + std::to_string(threads_max), "threads"};
    if (options.activation_bits != 8 && options.activation_bits != 16)
        return base::Error{base::ErrorCode::invalid_argument, "activation_bits is " + std::to_string(options.activation_bits) + "; allowed: 8 or 16", "activation_bits"};
    try {
        return std::unique_ptr<Backend>(std::make_unique<CpuBackend>(row.value()->name, make_table(*row.value()), options, threads));
    } catch (const std::system_error& error) {
        return base::Error{base::ErrorCode::unavailable, "cannot start " + std::to_string(threads) + " compute threads: " + error.what() + " (--threads)", "threads"};
    }
}

CpuBackend::CpuBackend(std::string_view isa, const KernelTable& table, const CpuOptions& options, uint32_t threads)
    : name_("cpu/" + std::string(isa)), table_(table), levels_(options.activation_bits / 8), pool_(threads) {
    CHECK_LE(table_.tile_columns, max_tile_columns);
    CHECK_LE(table_.tile_columns_many, table_.tile_columns);
    CHECK_LE(table_.group_panels, group_panels_max);
}

uint64_t CpuBackend::matrix_bytes(quant::Type type, uint64_t rows, uint64_t cols) const {
    return panel_matrix_bytes(panel_shape(type, rows, cols));
}

uint64_t CpuBackend::vector_bytes(uint64_t n) const { return Arena::rounded(n * sizeof(float)); }
uint64_t CpuBackend::tensor_bytes(uint64_t rows, uint64_t cols) const { return Arena::rounded(rows * cols * sizeof(float)); }

namespace {
size_t kv_head_bytes(const KvShape& shape) {
    return size_t{64} * (shape.head_dim + padded_head_dim(shape.head_dim)) * element_bytes(shape.type);  // a multiple of 64
}
}  // namespace

uint64_t kv_block_bytes(const KvShape& shape) { return uint64_t{shape.n_layers} * shape.n_kv_heads * kv_head_bytes(shape); }

uint64_t CpuBackend::kv_block_bytes(const KvShape& shape) const { return cpu::kv_block_bytes(shape); }

uint32_t CpuBackend::attention_rows(const StepShape& shape) {
    // Enough queries to use every key several times from L1; more only adds state.
    const uint32_t group = shape.n_heads / shape.n_kv_heads;
    return group >= 24 ? 1 : 24 / group;
}

size_t CpuBackend::thread_scratch_floats(const StepShape& shape) {
    const size_t attention = attention_scratch_floats(attention_rows(shape), shape.n_heads / shape.n_kv_heads, shape.head_dim);
    const size_t gate_and_up = size_t{2} * max_tile_columns * group_panels_max * panel_rows;
    return Arena::rounded(sizeof(float) * std::max(attention, gate_and_up)) / sizeof(float);
}

size_t CpuBackend::activation_bytes(const StepShape& shape) const {
    const size_t elements = size_t{shape.rows_max} * shape.cols_max, blocks = size_t{shape.rows_max} * ((shape.cols_max + block_k - 1) / block_k);
    return Arena::rounded(elements * levels_) + 3 * Arena::rounded(blocks * 4) + 2 * Arena::rounded(blocks * 8) + Arena::rounded(elements * sizeof(float));
}

uint64_t CpuBackend::scratch_bytes(const StepShape& shape) const {
    return activation_bytes(shape) + pool_.threads() * thread_scratch_floats(shape) * sizeof(float) +
           shape.n_ropes * Arena::rounded(size_t{shape.rows_max} * 2 * shape.head_dim * sizeof(float));
}

base::Result<void> CpuBackend::reserve(uint64_t weight_bytes, uint64_t tensor_bytes, const KvShape& kv, uint32_t kv_blocks_count,
                                       const StepShape& step) {
    CHECK(step.n_kv_heads > 0 && step.n_heads % step.n_kv_heads == 0 && step.rows_max > 0);
    CHECK_EQ(kv.n_kv_heads, step.n_kv_heads);
    CHECK_EQ(kv.head_dim, step.head_dim);
    kv_ = kv;
    step_ = step;
    kv_blocks_count_ = kv_blocks_count;
    kv_head_bytes_ = kv_head_bytes(kv);
    const uint64_t block_bytes = kv_block_bytes(kv);
    if (block_bytes != 0 && kv_blocks_count > SIZE_MAX / 2 / block_bytes)
        return base::Error{base::ErrorCode::io, "memory for the KV: " + std::to_string(kv_blocks_count) + " blocks of " + std::to_string(block_bytes) + " bytes are more than an address space", ""};
    struct { Arena& arena; uint64_t bytes; const char* what; } const plan[] = {
        {weights_arena_, weight_bytes, "the weights"},
        {tensors_arena_, tensor_bytes, "the activations"},
        {kv_arena_, block_bytes * kv_blocks_count, "the KV"},
        {scratch_arena_, scratch_bytes(step), "the scratch of a step"},
    };
    for (const auto& part : plan)
        if (base::Result<void> result = part.arena.reserve(part.bytes, part.what); !result) return result;

    const size_t elements = size_t{step.rows_max} * step.cols_max, blocks = size_t{step.rows_max} * ((step.cols_max + block_k - 1) / block_k);
    codes_.codes = reinterpret_cast<int8_t*>(scratch_arena_.take(elements * levels_));
    codes_.scale = reinterpret_cast<float*>(scratch_arena_.take(blocks * 4));
    codes_.scaled_sum = reinterpret_cast<float*>(scratch_arena_.take(blocks * 4));
    codes_.minus_8_sum = reinterpret_cast<int32_t*>(scratch_arena_.take(blocks * 4));
    codes_.scaled_sum_halves = reinterpret_cast<float*>(scratch_arena_.take(blocks * 8));
    codes_.minus_8_sum_halves = reinterpret_cast<int32_t*>(scratch_arena_.take(blocks * 8));
    values_ = reinterpret_cast<float*>(scratch_arena_.take(elements * sizeof(float)));
    thread_scratch_ = reinterpret_cast<float*>(scratch_arena_.take(pool_.threads() * thread_scratch_floats(step) * sizeof(float)));
    positions_.resize(step.rows_max);
    tables_.resize(step.rows_max);
    units_.reserve(step.rows_max);
    chosen_.resize(size_t{step.rows_max} * step.n_experts_used);
    choices_.resize(chosen_.size());
    expert_ends_.resize(step.n_experts);
    return {};
}

base::Result<Matrix> CpuBackend::upload(const HostMatrix& matrix) {
    const uint64_t row_bytes = quant::row_bytes(matrix.type, matrix.cols);
    CHECK_EQ(matrix.bytes.size(), matrix.rows * row_bytes);
    PanelMatrix panels = panel_shape(matrix.type, matrix.rows, matrix.cols);
    std::byte* data = weights_arena_.take(panel_matrix_bytes(panels));
    // Chunks of about 64 KiB: enough to keep every thread busy to the end.
    const uint64_t panel_source_bytes = row_bytes * panel_rows;
    const uint32_t per_chunk = static_cast<uint32_t>(std::max<uint64_t>(1, 65536 / panel_source_bytes));
    std::atomic<int64_t> bad{-1};
    pool_.run((panels.n_panels + per_chunk - 1) / per_chunk, [&](uint32_t chunk, uint32_t) {
        const uint32_t first = chunk * per_chunk, last = std::min(first + per_chunk, panels.n_panels);
        const int64_t row = fill_panels(panels, data, matrix.bytes.data(), first, last);
        if (row < 0) return;
        // The lowest bad row, so that the message does not depend on the threads.
        int64_t seen = bad.load();
        while ((seen < 0 || row < seen) && !bad.compare_exchange_weak(seen, row)) {}
    });
    if (const int64_t row = bad.load(); row >= 0)
        return base::Error{base::ErrorCode::bad_file,
                           base::cat("tensor \"", matrix.name, "\" row ", row, " (byte ", matrix.offset + static_cast<uint64_t>(row) * row_bytes,
                                     matrix.file.empty() ? "" : " of ", matrix.file, "): a NaN or infinite ", info(panels.form).integer() ? "scale" : "weight",
                                     "; allowed: finite numbers"),
                           ""};
    panels.data = data;
    matrices_.push_back(panels);
    return Matrix{static_cast<uint32_t>(matrices_.size() - 1), panels.rows, panels.cols, panels.type};
}

base::Result<Vector> CpuBackend::upload_vector(std::string_view name, std::span<const float> values) {
    for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]))
            return base::Error{base::ErrorCode::bad_file, "tensor \"" + std::string(name) + "\" element " + std::to_string(i) + ": NaN or infinite; allowed: finite numbers", ""};
    auto* data = reinterpret_cast<float*>(weights_arena_.take(values.size_bytes()));
    std::memcpy(data, values.data(), values.size_bytes());
    return Vector{data, static_cast<uint32_t>(values.size())};
}

uint32_t CpuBackend::add_rope(const RopeSpec& spec) {
    Rope rope;
    rope.pairs = spec.pairs;
    rope.n_rot = static_cast<uint32_t>(2 * spec.frequencies.size());
    rope.magnitude = spec.magnitude;
    rope.frequencies = spec.frequencies;
    CHECK(rope.n_rot > 0 && rope.n_rot <= step_.head_dim);
    CHECK_LT(ropes_.size(), step_.n_ropes);
    rope.cos_sin = reinterpret_cast<float*>(scratch_arena_.take(size_t{step_.rows_max} * 2 * step_.head_dim * sizeof(float)));
    ropes_.push_back(std::move(rope));
    return static_cast<uint32_t>(ropes_.size() - 1);
}

Tensor CpuBackend::alloc(uint32_t rows, uint32_t cols) {
    return {reinterpret_cast<float*>(tensors_arena_.take(size_t{rows} * cols * sizeof(float))), rows, cols};
}

}  // namespace kernels::cpu
