// A model without weights: the logits of a row are a hash of all tokens of its sequence up to that row, as the KV
// blocks hold them. forward() stores each token in (block, slot) through the block table it is given, and reads the
// history back through that table, so a wrong table, a block reused too early or a prefix taken from another prompt
// gives other logits, as it would in a real model.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/batch.h"
#include "tests/support/fake_clock.h"
#include "tests/support/token_history.h"

namespace support {

struct FakeModelConfig {
    uint32_t n_vocab = 272;  // FakeTokenizer's
    uint32_t context_length = 4'096;
    uint32_t kv_blocks_count = 256;
    uint64_t seed = 1;
    // Added to the logits, which are otherwise uniform in [-4, 4): token i gets bias[i]; shorter is 0 from there on.
    std::vector<float> bias;
    // A row whose own token is one of these is broken: NaN in the middle, +infinity at the end, all zero.
    model::TokenId nan_token = -1, infinity_token = -1, zeros_token = -1;
    // forward() moves the clock, when there is one.
    FakeClock* clock = nullptr;
    int64_t step_ns = 1'000'000, row_ns = 10'000;
};

class FakeModel final : public model::ForwardPass {
  public:
    explicit FakeModel(FakeModelConfig config);

    uint32_t n_vocab() const override { return config_.n_vocab; }
    uint32_t context_length() const override { return config_.context_length; }
    uint32_t kv_blocks_count() const override { return config_.kv_blocks_count; }
    model::Logits forward(const model::Batch& batch) override;

    // What the row of the last token of `history` must get, computed from the tokens alone. (n_vocab)
    std::vector<float> logits_for(std::span<const model::TokenId> history) const;

    struct Seen {
        uint64_t steps = 0, rows = 0;
        uint32_t rows_max = 0, sequences_max = 0;  // of one step
        uint32_t rows_of_a_sequence_max = 0;
    };
    const Seen& seen() const { return seen_; }

  private:
    void fill(uint64_t history, model::TokenId token, float* row) const;

    FakeModelConfig config_;
    Seen seen_;
    TokenHistory history_;
    std::vector<float> logits_;      // (64, n_vocab) or more
};

}  // namespace support
