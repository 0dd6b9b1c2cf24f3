// Byte-pair merging: the adjacent pair of the lowest rank is joined, the leftmost first, until no pair has a merge.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/hash_table.h"
#include "text/tokenizer.h"

namespace text {

// (left id, right id) -> rank and id of the joined token.
class MergeTable {
  public:
    struct Merge {
        uint32_t rank;
        TokenId joined;
    };
    void reserve(size_t merges_count) { table_.reserve(merges_count); }
    HashTable<Merge>::Added add(TokenId left, TokenId right, Merge merge) { return table_.add(key(left, right), merge); }
    const Merge* find(TokenId left, TokenId right) const { return table_.find(key(left, right)); }

  private:
    static uint64_t key(TokenId left, TokenId right) {
        return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    }
    HashTable<Merge> table_;
};

// Scratch memory of merge(): reused between the pre-tokens of a text.
struct MergeScratch {
    struct Symbol {
        TokenId id;
        uint32_t previous, next;  // neighbours; UINT32_MAX at the ends
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> heap;  // rank << 32 | index of the left symbol
};

// Appends the ids of one pre-token. Bytes without a token are left out, as the reference does. O(n log n) with n bytes;
// n < 2^32.
void merge(std::string_view pre_token, const std::array<TokenId, 256>& byte_tokens, const MergeTable& merges, MergeScratch& scratch,
           std::vector<TokenId>& out);

}  // namespace text
