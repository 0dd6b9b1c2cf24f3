// Texts of tokens -> ids. Keeps hashes only; who asks says how to get at the text of an id.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text/hash_table.h"
#include "text/tokenizer.h"

namespace text {

class TokenLookup {
  public:
    using Added = HashTable<TokenId>::Added;

    void reserve(size_t count) { table_.reserve(count); }

    template <typename TextOf>
    Added add(TokenId id, TextOf&& text_of) {
        const std::string_view text = text_of(id);
        longest_ = std::max(longest_, text.size());
        return table_.add(hash(text), id, [&](TokenId other) { return text_of(other) == text; });
    }
    // -1: no token has this text. O(bytes of the longest token).
    template <typename TextOf>
    TokenId find(std::string_view text, TextOf&& text_of) const {
        if (text.size() > longest_) return -1;
        const TokenId* id = table_.find(hash(text), [&](TokenId other) { return text_of(other) == text; });
        return id ? *id : -1;
    }

  private:
    static uint64_t hash(std::string_view text) {
        uint64_t h = text.size() * 0x9e3779b97f4a7c15ULL;
        for (; text.size() >= 8; text.remove_prefix(8)) {
            uint64_t word;
            std::memcpy(&word, text.data(), 8);
            h = mix_bits(h ^ word) + 0x9e3779b97f4a7c15ULL;
        }
        uint64_t tail = 0;
        std::memcpy(&tail, text.data(), text.size());
        return mix_bits(h ^ tail);
    }

    HashTable<TokenId> table_;
    size_t longest_ = 0;
};

}  // namespace text
