// The tokens that are found in the text itself before anything is merged: control, unknown and user-defined ones. The same
// for every kind of vocabulary.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace text {

class AddedTokens {
  public:
    // `text` is not empty and at most limits::vocab_special_bytes long. `anywhere`: user-defined tokens, which a user's
    // text may hold; the others are read in template text only.
    void add(TokenId id, std::string_view text, bool anywhere);
    void finish();  // after the last add()

    struct Match {
        TokenId id = -1;
        size_t bytes = 0;  // 0: none
    };
    // The longest token at text[at...]. Those that may not stand anywhere must end at or before `template_end`.
    Match match(std::string_view text, size_t at, size_t template_end) const;

  private:
    struct Row {
        uint32_t begin, bytes;  // in arena_
        TokenId id;
        bool anywhere;
    };
    std::string_view text_of(const Row& row) const { return std::string_view(arena_).substr(row.begin, row.bytes); }

    std::string arena_;
    std::vector<Row> rows_;                     // sorted by text
    std::array<uint32_t, 257> first_by_byte_{};  // where the rows of a first byte begin
};

}  // namespace text
