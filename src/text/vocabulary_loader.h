// What loading shares between the kinds of vocabularies: messages, and the arrays and ids that every kind has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "base/result.h"
#include "gguf/file.h"
#include "text/vocabulary.h"

namespace text::loader {

inline constexpr std::string_view tokens_key = "tokenizer.ggml.tokens", types_key = "tokenizer.ggml.token_type",
                                  merges_key = "tokenizer.ggml.merges", scores_key = "tokenizer.ggml.scores",
                                  model_key = "tokenizer.ggml.model", pre_key = "tokenizer.ggml.pre";

using Step = std::optional<base::Error>;

inline std::string quoted(std::string_view text) { return base::cat('"', base::printable(text), '"'); }

// "KEY (byte OFFSET): what"
base::Error bad(const gguf::File& file, std::string_view key, const std::string& what);
base::Error unsupported(const gguf::File& file, std::string_view key, std::string_view value, std::string_view allowed);

// The steps in the order of their calls; each returns an error or nothing.
class Common {
  public:
    Common(const gguf::File& file, Vocabulary& vocabulary) : file_(file), vocabulary_(vocabulary) {}

    Step tokens();                  // limits, UTF-8, each text once
    Step types(int64_t type_max);   // kinds, 1..type_max
    // Fills arena and token_begin, and `added`: bytes_of(id, out) appends the bytes that a token stands for,
    // match_of(id, out) the text in which an added one is looked for.
    template <typename BytesOf, typename MatchOf>
    Step bytes(BytesOf&& bytes_of, MatchOf&& match_of);
    // bos, eos and so on; add_bos is what holds when the file doesn't say.
    Step special(bool add_bos);

    const std::vector<std::string_view>& texts() const { return tokens_; }  // in the file
    TokenId find(std::string_view text) const {
        return index_.find(text, [&](TokenId id) { return tokens_[static_cast<size_t>(id)]; });
    }
    TokenKind kind(TokenId id) const { return vocabulary_.kinds[static_cast<size_t>(id)]; }
    bool is_added(TokenId id) const {
        const TokenKind k = kind(id);
        return k == TokenKind::control || k == TokenKind::unknown || k == TokenKind::user_defined;
    }
    Step wrong_length(std::string_view key, size_t length) const;
    Step flag(std::string_view key, bool& flag) const;  // left as it is when the key is absent

  private:
    Step total_bytes() const;
    Step special_length(TokenId id, size_t bytes) const;
    Step special_id(std::string_view key, TokenId& id) const;

    const gguf::File& file_;
    Vocabulary& vocabulary_;
    std::vector<std::string_view> tokens_;
    TokenLookup index_;
};

template <typename BytesOf, typename MatchOf>
Step Common::bytes(BytesOf&& bytes_of, MatchOf&& match_of) {
    if (auto error = total_bytes()) return error;
    vocabulary_.token_begin.reserve(tokens_.size() + 1);
    std::string text;
    for (size_t i = 0; i < tokens_.size(); ++i) {
        const TokenId id = static_cast<TokenId>(i);
        vocabulary_.token_begin.push_back(static_cast<uint32_t>(vocabulary_.arena.size()));
        bytes_of(id, vocabulary_.arena);
        if (!is_added(id)) continue;
        text.clear();
        match_of(id, text);
        if (auto error = special_length(id, text.size())) return error;
        vocabulary_.added.add(id, text, kind(id) == TokenKind::user_defined);
    }
    vocabulary_.token_begin.push_back(static_cast<uint32_t>(vocabulary_.arena.size()));
    vocabulary_.added.finish();
    return {};
}

}  // namespace text::loader
