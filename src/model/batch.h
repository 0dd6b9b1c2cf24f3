// What one engine step asks of the model, and what comes back. Plain views: whoever fills them keeps them alive
// until forward() returns.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/limits.h"

namespace model {

using TokenId = int32_t;
using BlockIndex = uint32_t;  // a KV block, [0, kv_blocks_count)

// The part of a step that belongs to one sequence: rows [first_row, first_row + n_rows) hold the tokens at
// positions [start_position, start_position + n_rows). Positions below start_position are already in the KV.
struct SequenceSlice {
    uint32_t first_row = 0;
    uint32_t n_rows = 0;
    uint32_t start_position = 0;
    // Block i holds positions [64 i, 64 i + 64); covers at least start_position + n_rows positions.
    std::span<const BlockIndex> block_table;
};

struct Batch {
    std::span<const TokenId> tokens;             // (n_rows), n_rows <= limits::step_tokens
    std::span<const SequenceSlice> sequences;    // disjoint, in row order, cover all rows
    std::span<const uint32_t> logit_rows;        // rows whose logits are wanted, ascending; may be empty
};

// (n_rows, n_vocab), row i belongs to Batch::logit_rows[i]. Valid until the next forward().
struct Logits {
    const float* data = nullptr;
    uint32_t n_rows = 0;
    uint32_t n_vocab = 0;
    std::span<const float> row(uint32_t i) const { return {data + size_t{i} * n_vocab, n_vocab}; }
};

// The seam between engine and model. model::Model is the real one; tests/support has a fake without weights.
// One thread at a time. After construction forward() allocates nothing.
// Promise: a row's logits depend only on its sequence's tokens at positions [0, position], bit for bit, whatever
// else is in the batch, however the prompt was cut into chunks, and whichever physical blocks are used.
class ForwardPass {
  public:
    virtual ~ForwardPass() = default;
    virtual uint32_t n_vocab() const = 0;
    virtual uint32_t context_length() const = 0;      // tokens a sequence may hold at most, from the file
    virtual uint32_t kv_blocks_count() const = 0;     // physical blocks available
    virtual Logits forward(const Batch& batch) = 0;

    // From now on forward() marks its progress by this clock, several times a layer, so that a watcher can tell a long
    // step from a hung one. Before the first forward().
    void set_clock(const base::Clock& clock) { clock_ = &clock; }
    // The last mark; 0 before the first. Any thread.
    int64_t last_beat_ns() const { return last_beat_ns_.load(std::memory_order_relaxed); }

  protected:
    void beat() {
        if (clock_) last_beat_ns_.store(clock_->now_ns(), std::memory_order_relaxed);
    }

  private:
    const base::Clock* clock_ = nullptr;
    std::atomic<int64_t> last_beat_ns_{0};
};

}  // namespace model
