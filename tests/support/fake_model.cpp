#include "tests/support/fake_model.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace support {

FakeModel::FakeModel(FakeModelConfig config)
    : config_(std::move(config)),
      history_(config_.kv_blocks_count),
      logits_(size_t{limits::step_tokens} * config_.n_vocab) {
    config_.bias.resize(config_.n_vocab, 0.0f);
}

void FakeModel::fill(uint64_t history, model::TokenId token, float* row) const {
    uint64_t state = TokenHistory::mix(history, config_.seed);
    for (uint32_t i = 0; i < config_.n_vocab; ++i) {
        state = state * 0x5851'f42d'4c95'7f2d + 0x1405'7b7e'f767'814f;
        row[i] = static_cast<float>(state >> 40) * (8.0f / 16'777'216.0f) - 4.0f + config_.bias[i];
    }
    if (token == config_.nan_token) row[config_.n_vocab / 2] = std::numeric_limits<float>::quiet_NaN();
    if (token == config_.infinity_token) row[config_.n_vocab - 1] = std::numeric_limits<float>::infinity();
    if (token == config_.zeros_token) std::fill_n(row, config_.n_vocab, 0.0f);
}

std::vector<float> FakeModel::logits_for(std::span<const model::TokenId> history) const {
    std::vector<float> row(config_.n_vocab);
    fill(TokenHistory::of(history), history.back(), row.data());
    return row;
}

model::Logits FakeModel::forward(const model::Batch& batch) {
    CHECK(!batch.tokens.empty() && batch.tokens.size() <= limits::step_tokens);
    for (const model::TokenId token : batch.tokens) CHECK(token >= 0 && static_cast<uint32_t>(token) < config_.n_vocab);
    history_.store(batch);
    for (const model::SequenceSlice& s : batch.sequences) {
        CHECK_LE(s.start_position + s.n_rows, config_.context_length);
        seen_.rows_of_a_sequence_max = std::max(seen_.rows_of_a_sequence_max, s.n_rows);
    }
    TokenHistory::for_logit_rows(batch, [&](const model::SequenceSlice& s, uint32_t position, uint32_t i) {
        fill(history_.of(s, position), batch.tokens[batch.logit_rows[i]], &logits_[size_t{i} * config_.n_vocab]);
    });

    seen_.steps += 1;
    seen_.rows += batch.tokens.size();
    seen_.rows_max = std::max(seen_.rows_max, static_cast<uint32_t>(batch.tokens.size()));
    seen_.sequences_max = std::max(seen_.sequences_max, static_cast<uint32_t>(batch.sequences.size()));
    if (config_.clock != nullptr) config_.clock->advance_ns(config_.step_ns + config_.row_ns * static_cast<int64_t>(batch.tokens.size()));
    return {logits_.data(), static_cast<uint32_t>(batch.logit_rows.size()), config_.n_vocab};
}

}  // namespace support
