// How often each token of a sequence has been seen: what the penalties need. A small open-addressed table of the
// distinct tokens, so that a step touches only those and not the whole vocabulary.
// Sized once, on the submitter's thread; add() allocates nothing.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "engine/request.h"

namespace engine {

class TokenCounts {
  public:
    struct Entry {
        TokenId token = -1;      // -1: free
        uint32_t generated = 0;  // times generated: presence and frequency penalty
        uint32_t in_window = 0;  // times among the last `last_n` tokens, prompt included: repetition penalty
    };

    TokenCounts() = default;  // inactive: add() does nothing
    // distinct_max: different tokens that prompt and answer may have together. last_n as SamplingParams::repetition_last_n.
    TokenCounts(size_t distinct_max, int32_t last_n) : entries_(entries_for(distinct_max)), last_n_(last_n) {}
    static size_t bytes_for(size_t distinct_max) { return entries_for(distinct_max) * sizeof(Entry); }

    bool active() const { return !entries_.empty(); }
    // `history` ends with the token that is new; `generated`: it is not of the prompt.
    void add(std::span<const TokenId> history, bool generated) {
        if (!active()) return;
        Entry& entry = at(history.back());
        entry.generated += generated;
        if (last_n_ == 0) return;
        entry.in_window += 1;
        if (last_n_ > 0 && history.size() > static_cast<size_t>(last_n_)) {
            Entry& left = at(history[history.size() - 1 - static_cast<size_t>(last_n_)]);
            CHECK(left.in_window > 0);
            left.in_window -= 1;
        }
    }
    std::span<const Entry> entries() const { return entries_; }  // in no order; skip those with token == -1

  private:
    static size_t entries_for(size_t distinct_max) { return std::bit_ceil(2 * distinct_max + 2); }
    Entry& at(TokenId token) {
        size_t i = (static_cast<uint32_t>(token) * 0x9e37'79b9u) & (entries_.size() - 1);
        while (entries_[i].token != -1 && entries_[i].token != token) i = (i + 1) & (entries_.size() - 1);
        entries_[i].token = token;
        return entries_[i];
    }

    std::vector<Entry> entries_;  // power of two, at most half full
    int32_t last_n_ = 0;
};

}  // namespace engine
