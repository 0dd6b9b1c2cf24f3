// The verbs of a step other than products.
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/limits.h"
#include "kernels/cpu/cpu_backend.h"

namespace kernels::cpu {

void CpuBackend::begin_step(std::span<const Slice> slices) {
    CHECK(!float_mode_.has_value());
    float_mode_.emplace();
    pool_.wake();
    slices_ = slices;
    units_.clear();
    n_rows_ = 0;
    attention_tokens_ = 0;
    const uint32_t tile_rows = attention_rows(step_);
    for (const Slice& slice : slices) {
        CHECK_EQ(slice.first_row, n_rows_);
        CHECK_LE(n_rows_ + slice.n_rows, step_.rows_max);
        const uint64_t end = uint64_t{slice.start_position} + slice.n_rows;
        CHECK_LE(end, slice.block_table.size() * limits::kv_block_tokens);
        for (uint64_t i = slice.start_position / limits::kv_block_tokens; i * limits::kv_block_tokens < end; ++i) CHECK_LT(slice.block_table[i], kv_blocks_count_);
        for (uint32_t i = 0; i < slice.n_rows; ++i) {
            positions_[n_rows_ + i] = slice.start_position + i;
            tables_[n_rows_ + i] = slice.block_table.data();
            attention_tokens_ += slice.start_position + i + 1;
        }
        for (uint32_t i = 0; i < slice.n_rows; i += tile_rows)
            units_.push_back({slice.first_row + i, std::min(tile_rows, slice.n_rows - i), slice.start_position + i, slice.block_table.data()});
        n_rows_ += slice.n_rows;
    }
    for (Rope& rope : ropes_) {
        for_rows(n_rows_, rope.n_rot * 20, [&](uint32_t row) {
            float* cosines = rope.cos_sin + size_t{row} * 2 * rope.n_rot;
            float* sines = cosines + rope.n_rot;
            const uint32_t half = rope.n_rot / 2;
            const bool halves = rope.pairs == RopePairs::halves;
            for (uint32_t i = 0; i < half; ++i) {
                const double angle = positions_[row] * rope.frequencies[i];
                const float c = static_cast<float>(std::cos(angle) * rope.magnitude), s = static_cast<float>(std::sin(angle) * rope.magnitude);
                const uint32_t a = halves ? i : 2 * i, b = halves ? i + half : 2 * i + 1;
                cosines[a] = cosines[b] = c;
                sines[a] = -s;
                sines[b] = s;
            }
        });
    }
}

void CpuBackend::end_step() {
    CHECK(float_mode_.has_value());
    float_mode_.reset();
    slices_ = {};
}

void CpuBackend::embed(const Matrix& table, std::span<const int32_t> tokens, Tensor out) {
    CHECK_LT(table.index, matrices_.size());
    CHECK_EQ(tokens.size(), out.rows);
    CHECK_EQ(out.cols, table.cols);
    const PanelMatrix& panels = matrices_[table.index];
    for_rows(out.rows, out.cols * 2, [&](uint32_t row) {
        CHECK(tokens[row] >= 0 && static_cast<uint32_t>(tokens[row]) < panels.rows);
        decode_row(panels, static_cast<uint32_t>(tokens[row]), out.data + size_t{row} * out.cols);
    });
}

void CpuBackend::rms_norm(Tensor x, Vector weight, float eps, Tensor out) {
    CHECK_EQ(x.cols, weight.n);
    CHECK_EQ(out.cols, x.cols);
    CHECK_EQ(out.rows, x.rows);
    for_rows(x.rows, x.cols / 8 + 1, [&](uint32_t row) {
        table_.rms_norm(x.data + size_t{row} * x.cols, weight.data, eps, x.cols, out.data + size_t{row} * out.cols);
    });
}

void CpuBackend::rope(uint32_t rope_id, Tensor x, uint32_t n_heads) {
    CHECK_LT(rope_id, ropes_.size());
    CHECK_EQ(x.rows, n_rows_);
    CHECK_EQ(x.cols % n_heads, 0u);
    const Rope& rope = ropes_[rope_id];
    for_rows(x.rows, x.cols / 8 + 1, [&](uint32_t row) {
        table_.rope[static_cast<size_t>(rope.pairs)](x.data + size_t{row} * x.cols, n_heads, x.cols / n_heads, rope.n_rot, rope.cos_sin + size_t{row} * 2 * rope.n_rot);
    });
}

void CpuBackend::store_kv(uint32_t layer, Tensor k, Tensor v) {
    CHECK_LT(layer, kv_.n_layers);
    CHECK(k.rows == n_rows_ && v.rows == n_rows_);
    CHECK(k.cols == kv_.n_kv_heads * kv_.head_dim && v.cols == k.cols);
    const size_t block_bytes = kv_head_bytes_ * kv_.n_kv_heads;
    std::byte* base = kv_arena_.data() + size_t{layer} * kv_blocks_count_ * block_bytes;
    const auto kernel = table_.store_kv[static_cast<size_t>(kv_.type)];
    for_rows(n_rows_, k.cols, [&](uint32_t row) {
        const uint32_t position = positions_[row];
        std::byte* block = base + size_t{tables_[row][position / limits::kv_block_tokens]} * block_bytes;
        for (uint32_t h = 0; h < kv_.n_kv_heads; ++h) {
            StoreKvArgs a;
            a.k = k.data + size_t{row} * k.cols + size_t{h} * kv_.head_dim;
            a.v = v.data + size_t{row} * v.cols + size_t{h} * kv_.head_dim;
            a.head_dim = kv_.head_dim;
            a.slot = position % limits::kv_block_tokens;
            a.block = block + h * kv_head_bytes_;
            kernel(a);
        }
    });
}

void CpuBackend::attention(uint32_t layer, Tensor q, const AttentionSpec& spec, Tensor out) {
    CHECK_LT(layer, kv_.n_layers);
    CHECK(q.rows == n_rows_ && out.rows == n_rows_ && q.cols == out.cols && q.cols == step_.n_heads * kv_.head_dim);
    const size_t block_bytes = kv_head_bytes_ * kv_.n_kv_heads, scratch_floats = thread_scratch_floats(step_);
    const std::byte* base = kv_arena_.data() + size_t{layer} * kv_blocks_count_ * block_bytes;
    const auto kernel = table_.attention[static_cast<size_t>(kv_.type)];
    const uint32_t n_group = step_.n_heads / kv_.n_kv_heads, n_units = static_cast<uint32_t>(units_.size());
    const auto attend = [&](uint32_t chunk, uint32_t thread) {
        // The last units of a prefill see the most tokens: the long ones go first, so that the ends meet.
        const AttentionUnit& unit = units_[n_units - 1 - chunk / kv_.n_kv_heads];
        const uint32_t h = chunk % kv_.n_kv_heads;
        AttentionArgs a;
        a.q = q.data + size_t{unit.first_row} * q.cols + size_t{h} * n_group * kv_.head_dim;
        a.q_stride = q.cols;
        a.out = out.data + (a.q - q.data);
        a.out_stride = out.cols;
        a.n_rows = unit.n_rows;
        a.n_group = n_group;
        a.head_dim = kv_.head_dim;
        a.first_position = unit.first_position;
        a.kv = base + h * kv_head_bytes_;
        a.block_bytes = block_bytes;
        a.block_table = unit.block_table;
        a.scale = spec.scale;
        a.soft_cap = spec.soft_cap;
        a.window = spec.window;
        a.scratch = thread_scratch_ + thread * scratch_floats;
        kernel(a);
    };
    // Below some 100k multiply-adds the other thread's help costs more than it brings.
    constexpr uint64_t shared_work_min = 100'000;
    const uint32_t chunks = n_units * kv_.n_kv_heads;
    if (attention_tokens_ * q.cols * 2 < shared_work_min) {
        for (uint32_t i = 0; i < chunks; ++i) attend(i, 0);
    } else {
        pool_.run(chunks, attend);
    }
}

void CpuBackend::activate_mul(Activation f, Tensor gate, Tensor up, Tensor out) {
    CHECK(gate.rows == out.rows && up.rows == out.rows && gate.cols == out.cols && up.cols == out.cols);
    for_rows(out.rows, out.cols / 2 + 1, [&](uint32_t row) {
        const size_t at = size_t{row} * out.cols;
        table_.activate_mul[static_cast<size_t>(f)](gate.data + at, up.data + at, out.data + at, out.cols);
    });
}

void CpuBackend::add(Tensor x, Tensor y) {
    CHECK(x.rows == y.rows && x.cols == y.cols);
    for_rows(x.rows, x.cols / 8 + 1, [&](uint32_t row) { table_.add(x.data + size_t{row} * x.cols, y.data + size_t{row} * x.cols, x.cols); });
}

void CpuBackend::add_bias(Tensor x, Vector bias) {
    CHECK_EQ(x.cols, bias.n);
    for_rows(x.rows, x.cols / 8 + 1, [&](uint32_t row) { table_.add(x.data + size_t{row} * x.cols, bias.data, x.cols); });
}

void CpuBackend::scale(Tensor x, float factor) {
    for_rows(x.rows, x.cols / 8 + 1, [&](uint32_t row) { table_.scale(x.data + size_t{row} * x.cols, factor, x.cols); });
}

void CpuBackend::soft_cap(Tensor x, float cap) {
    CHECK(cap > 0);
    for_rows(x.rows, x.cols / 2 + 1, [&](uint32_t row) { table_.soft_cap(x.data + size_t{row} * x.cols, cap, x.cols); });
}

void CpuBackend::gather_rows(Tensor x, std::span<const uint32_t> rows, Tensor out) {
    CHECK_EQ(rows.size(), out.rows);
    CHECK_EQ(x.cols, out.cols);
    for (size_t i = 0; i < rows.size(); ++i) {
        CHECK_LT(rows[i], x.rows);
        std::memcpy(out.data + i * out.cols, x.data + size_t{rows[i]} * x.cols, x.cols * sizeof(float));
    }
}

}  // namespace kernels::cpu
