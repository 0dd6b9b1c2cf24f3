// A tokenizer without a file: one token per byte, a few longer pieces, and control tokens. encode() takes any text, a
// byte a token (pieces are only ever generated), and control tokens by name where specials are parsed.
#pragma once

#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace support {

class FakeTokenizer final : public text::Tokenizer {
  public:
    static constexpr text::TokenId eos = 256, bos = 257, eot = 258, pad = 259;  // control; eos and eot end a generation
    static constexpr text::TokenId first_piece = 260;
    static constexpr uint32_t vocab = 272;

    FakeTokenizer();

    static constexpr text::TokenId byte_token(char c) { return static_cast<unsigned char>(c); }

    void encode(std::string_view text, bool parse_special, std::vector<text::TokenId>& out) const override;
    void encode(std::span<const text::Segment> segments, bool add_special, std::vector<text::TokenId>& out) const override;
    uint32_t n_vocab() const override { return vocab; }
    std::string_view token_bytes(text::TokenId id) const override { return bytes_[static_cast<size_t>(id)]; }
    bool prefixes_space = false;  // as SentencePiece with add_space_prefix
    std::string_view leading_bytes(text::TokenId id) const override {
        std::string_view bytes = token_bytes(id);
        if (prefixes_space && bytes.starts_with(' ')) bytes.remove_prefix(1);
        return bytes;
    }
    text::TokenKind token_kind(text::TokenId id) const override {
        return id >= eos && id < first_piece ? text::TokenKind::control : text::TokenKind::normal;
    }
    bool is_end_of_generation(text::TokenId id) const override { return id == eos || id == eot; }
    std::span<const text::TokenId> end_of_generation_ids() const override { return ends_; }
    text::TokenId bos_id() const override { return bos; }
    text::TokenId eos_id() const override { return eos; }
    std::string_view pre_tokenizer() const override { return "fake"; }

  private:
    std::vector<std::string> bytes_;  // (vocab)
    std::vector<text::TokenId> ends_{eos, eot};
};

}  // namespace support
