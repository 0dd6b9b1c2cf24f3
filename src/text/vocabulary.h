// The vocabulary of a byte-level BPE model, checked completely before anything uses it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "text/bpe.h"
#include "text/tokenizer.h"

namespace text {

struct Vocabulary {
    std::string pre_tokenizer;               // tokenizer.ggml.pre
    std::string arena;                       // all token bytes, one after the other
    std::vector<uint32_t> token_begin;       // (n_vocab + 1) offsets into arena
    std::vector<TokenKind> kinds;            // (n_vocab)
    std::array<TokenId, 256> byte_tokens{};  // token of a single byte, -1 where the vocabulary has none
    MergeTable merges;
    std::vector<TokenId> added;  // control, unknown and user-defined tokens, sorted by their bytes
    TokenId bos_id = -1, eos_id = -1;
    bool add_bos = false, add_eos = false;
    std::vector<TokenId> end_of_generation;  // sorted

    uint32_t n_vocab() const { return static_cast<uint32_t>(kinds.size()); }
    std::string_view bytes(TokenId id) const {
        const size_t i = static_cast<size_t>(id);
        return std::string_view(arena).substr(token_begin[i], token_begin[i + 1] - token_begin[i]);
    }
};

// Errors: `unsupported` names a model or pre-tokenizer that is not built; `bad_file` names the key, its byte offset,
// the element and what was allowed.
base::Result<Vocabulary> load_vocabulary(const gguf::File& file);

}  // namespace text
