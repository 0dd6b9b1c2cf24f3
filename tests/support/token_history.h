// What the KV blocks hold, as hashes of tokens: stores the tokens of a batch by (block, slot) through its block tables
// and reads back, through a table, a hash of all tokens up to a position. A wrong table, a block reused too early or a
// false prefix hit gives another hash.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "model/batch.h"

namespace support {

class TokenHistory {
  public:
    static constexpr uint32_t block = limits::kv_block_tokens;

    explicit TokenHistory(uint32_t blocks_count) : slots_(size_t{blocks_count} * block, 0xdead), blocks_count_(blocks_count) {}

    // Checks the shape of the batch on the way.
    void store(const model::Batch& batch) {
        uint32_t next_row = 0;
        for (const model::SequenceSlice& s : batch.sequences) {
            CHECK_EQ(s.first_row, next_row);
            CHECK(s.n_rows > 0);
            CHECK_GE(s.block_table.size() * block, size_t{s.start_position} + s.n_rows);
            for (const model::BlockIndex b : s.block_table) CHECK_LT(b, blocks_count_);
            for (uint32_t i = 0; i < s.n_rows; ++i) {
                const uint32_t position = s.start_position + i;
                uint64_t* slot = &slots_[size_t{s.block_table[position / block]} * block + position % block];
                *slot = token_hash(position % block == 0 ? 0 : slot[-1], batch.tokens[s.first_row + i]);
            }
            next_row += s.n_rows;
        }
        CHECK_EQ(size_t{next_row}, batch.tokens.size());
    }
    // Of the tokens at positions [0, position]. O(position / 64).
    uint64_t of(const model::SequenceSlice& s, uint32_t position) const {
        uint64_t whole = 0;
        for (uint32_t b = 0; b < position / block; ++b) whole = mix(whole, slots_[size_t{s.block_table[b]} * block + block - 1]);
        return mix(whole, slots_[size_t{s.block_table[position / block]} * block + position % block]);
    }
    // The same from the tokens alone.
    static uint64_t of(std::span<const model::TokenId> tokens) {
        uint64_t whole = 0, in_block = 0;
        for (size_t i = 0; i < tokens.size(); ++i) {
            if (i % block == 0 && i > 0) whole = mix(whole, in_block);
            in_block = token_hash(i % block == 0 ? 0 : in_block, tokens[i]);
        }
        return mix(whole, in_block);
    }
    static uint64_t mix(uint64_t a, uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a ^ 0x9e37'79b9'7f4a'7c15) * (b ^ 0xbf58'476d'1ce4'e5b9);
        return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
    }
    // Calls use(slice, position, index) for each row whose logits are wanted; checks that they ascend and are all there.
    template <typename Use>
    static void for_logit_rows(const model::Batch& batch, Use use) {
        uint32_t out = 0;
        for (const model::SequenceSlice& s : batch.sequences) {
            for (; out < batch.logit_rows.size() && batch.logit_rows[out] < s.first_row + s.n_rows; ++out) {
                CHECK(out == 0 || batch.logit_rows[out] > batch.logit_rows[out - 1]);
                use(s, s.start_position + (batch.logit_rows[out] - s.first_row), out);
            }
        }
        CHECK_EQ(size_t{out}, batch.logit_rows.size());
    }

  private:
    static uint64_t token_hash(uint64_t before, model::TokenId token) { return mix(before + 1, static_cast<uint64_t>(token) + 0x1'0000); }

    std::vector<uint64_t> slots_;  // (blocks_count, 64): the hash of the tokens in [0, slot] of the block
    uint32_t blocks_count_;
};

}  // namespace support
