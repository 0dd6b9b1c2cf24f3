#include "tests/support/fake_model.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace support {

namespace {

constexpr uint32_t block = limits::kv_block_tokens;

uint64_t mix(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a ^ 0x9e37'79b9'7f4a'7c15) * (b ^ 0xbf58'476d'1ce4'e5b9);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t token_hash(uint64_t before, model::TokenId token) { return mix(before + 1, static_cast<uint64_t>(token) + 0x1'0000); }

}  // namespace

FakeModel::FakeModel(FakeModelConfig config)
    : config_(std::move(config)),
      slots_(size_t{config_.kv_blocks_count} * block, 0xdead),
      logits_(size_t{limits::step_tokens} * config_.n_vocab) {
    config_.bias.resize(config_.n_vocab, 0.0f);
}

void FakeModel::fill(uint64_t history, model::TokenId token, float* row) const {
    uint64_t state = mix(history, config_.seed);
    for (uint32_t i = 0; i < config_.n_vocab; ++i) {
        state = state * 0x5851'f42d'4c95'7f2d + 0x1405'7b7e'f767'814f;
        row[i] = static_cast<float>(state >> 40) * (8.0f / 16'777'216.0f) - 4.0f + config_.bias[i];
    }
    if (token == config_.nan_token) row[config_.n_vocab / 2] = std::numeric_limits<float>::quiet_NaN();
    if (token == config_.infinity_token) row[config_.n_vocab - 1] = std::numeric_limits<float>::infinity();
    if (token == config_.zeros_token) std::fill_n(row, config_.n_vocab, 0.0f);
}

std::vector<float> FakeModel::logits_for(std::span<const model::TokenId> history) const {
    uint64_t whole = 0, in_block = 0;
    for (size_t i = 0; i < history.size(); ++i) {
        if (i % block == 0 && i > 0) whole = mix(whole, in_block);
        in_block = token_hash(i % block == 0 ? 0 : in_block, history[i]);
    }
    std::vector<float> row(config_.n_vocab);
    fill(mix(whole, in_block), history.back(), row.data());
    return row;
}

model::Logits FakeModel::forward(const model::Batch& batch) {
    CHECK(!batch.tokens.empty() && batch.tokens.size() <= limits::step_tokens);
    uint32_t next_row = 0;
    for (const model::SequenceSlice& s : batch.sequences) {
        CHECK_EQ(s.first_row, next_row);
        CHECK(s.n_rows > 0);
        CHECK_GE(s.block_table.size() * block, size_t{s.start_position} + s.n_rows);
        CHECK_LE(s.start_position + s.n_rows, config_.context_length);
        for (const model::BlockIndex b : s.block_table) CHECK_LT(b, config_.kv_blocks_count);
        for (uint32_t i = 0; i < s.n_rows; ++i) {
            const uint32_t position = s.start_position + i;
            uint64_t* slot = &slots_[size_t{s.block_table[position / block]} * block + position % block];
            const model::TokenId token = batch.tokens[s.first_row + i];
            CHECK(token >= 0 && static_cast<uint32_t>(token) < config_.n_vocab);
            *slot = token_hash(position % block == 0 ? 0 : slot[-1], token);
        }
        next_row += s.n_rows;
        seen_.rows_of_a_sequence_max = std::max(seen_.rows_of_a_sequence_max, s.n_rows);
    }
    CHECK_EQ(size_t{next_row}, batch.tokens.size());

    uint32_t out = 0;
    for (const model::SequenceSlice& s : batch.sequences) {
        uint64_t whole = 0;
        uint32_t whole_blocks = 0;
        for (; out < batch.logit_rows.size() && batch.logit_rows[out] < s.first_row + s.n_rows; ++out) {
            CHECK(out == 0 || batch.logit_rows[out] > batch.logit_rows[out - 1]);
            const uint32_t row = batch.logit_rows[out];
            const uint32_t position = s.start_position + (row - s.first_row);
            for (; whole_blocks < position / block; ++whole_blocks) {
                whole = mix(whole, slots_[size_t{s.block_table[whole_blocks]} * block + block - 1]);
            }
            const uint64_t in_block = slots_[size_t{s.block_table[position / block]} * block + position % block];
            fill(mix(whole, in_block), batch.tokens[row], &logits_[size_t{out} * config_.n_vocab]);
        }
    }
    CHECK_EQ(size_t{out}, batch.logit_rows.size());

    seen_.steps += 1;
    seen_.rows += batch.tokens.size();
    seen_.rows_max = std::max(seen_.rows_max, static_cast<uint32_t>(batch.tokens.size()));
    seen_.sequences_max = std::max(seen_.sequences_max, static_cast<uint32_t>(batch.sequences.size()));
    if (config_.clock != nullptr) config_.clock->advance_ns(config_.step_ns + config_.row_ns * static_cast<int64_t>(batch.tokens.size()));
    return {logits_.data(), out, config_.n_vocab};
}

}  // namespace support
