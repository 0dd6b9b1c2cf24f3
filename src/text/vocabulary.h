// The vocabulary of a model, checked completely before anything uses it. One struct a kind, over what they share.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/token_lookup.h"
#include "text/tokenizer.h"

namespace text {

struct Vocabulary {
    std::string pre_tokenizer;          // tokenizer.ggml.pre; "" when the file has none
    std::string arena;                  // all token bytes, one after the other
    std::vector<uint32_t> token_begin;  // (n_vocab + 1) offsets into arena
    std::vector<TokenKind> kinds;       // (n_vocab)
    AddedTokens added;                  // control, unknown and user-defined tokens
    TokenId bos_id = -1, eos_id = -1;
    bool add_bos = false, add_eos = false;
    std::vector<TokenId> end_of_generation;  // sorted

    uint32_t n_vocab() const { return static_cast<uint32_t>(kinds.size()); }
    std::string_view bytes(TokenId id) const {
        const size_t i = static_cast<size_t>(id);
        return std::string_view(arena).substr(token_begin[i], token_begin[i + 1] - token_begin[i]);
    }
};

// Byte-level BPE (GGUF "gpt2").
struct BpeVocabulary : Vocabulary {
    const PreTokenizer* pre = nullptr;
    std::array<TokenId, 256> byte_tokens{};  // token of a single byte, -1 where the vocabulary has none
    MergeTable merges;
    TokenLookup whole;  // by bytes; filled only where pre->whole_first
};

// SentencePiece BPE (GGUF "llama"). A space is U+2581 inside it; `bytes` are those of the text, with spaces.
struct SpmVocabulary : Vocabulary {
    std::array<TokenId, 256> byte_tokens{};  // <0x00> to <0xFF>: every one is there
    std::string piece_arena;                 // texts of the pieces, with U+2581
    std::vector<uint32_t> piece_begin;       // (n_vocab + 1); empty for what can't be merged
    std::vector<uint32_t> ranks;             // (n_vocab) 0 = the best score; equal scores, equal ranks
    TokenLookup pieces;                      // by piece text
    bool add_space_prefix = true;
    bool words_apart = false;                // no piece has U+2581 after another character: words never merge with the next

    std::string_view piece(TokenId id) const {
        const size_t i = static_cast<size_t>(id);
        return std::string_view(piece_arena).substr(piece_begin[i], piece_begin[i + 1] - piece_begin[i]);
    }
};

// Errors: `unsupported` names a model or pre-tokenizer that is not built; `bad_file` names the key, its byte offset,
// the element and what was allowed.
base::Result<BpeVocabulary> load_bpe_vocabulary(const gguf::File& file);
base::Result<SpmVocabulary> load_spm_vocabulary(const gguf::File& file);

}  // namespace text
