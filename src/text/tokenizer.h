// A tokenizer from a GGUF vocabulary: byte-level BPE or SentencePiece BPE. Owns everything it needs: nothing refers to
// the file afterwards. encode() takes n log n time for n bytes (heap merges), never recurses, never throws; any bytes are
// valid input: each maximal bad UTF-8 subpart is read as U+FFFD. Const and thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace text {

using TokenId = int32_t;

enum class TokenKind : uint8_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// A piece of a prompt and who wrote it. Only template text may become control tokens; text from a user never does.
struct Segment {
    std::string text;
    bool from_template = false;
};

class Tokenizer {
  public:
    // Reads tokenizer.ggml.*; refuses by name any model or pre-tokenizer that is not built.
    static base::Result<std::unique_ptr<Tokenizer>> from_gguf(const gguf::File& file);
    virtual ~Tokenizer() = default;

    // Appends the ids of `text`. parse_special: texts of control and user-defined tokens become those tokens.
    // User-defined (not control) tokens are matched in any text, as the reference does.
    virtual void encode(std::string_view text, bool parse_special, std::vector<TokenId>& out) const = 0;
    // Segments in order; specials are parsed only in those from the template. Adds BOS/EOS when the file asks for it
    // and the rendered text does not already begin with it.
    virtual void encode(std::span<const Segment> segments, bool add_special, std::vector<TokenId>& out) const = 0;

    virtual uint32_t n_vocab() const = 0;
    // Raw bytes of a token (not always whole UTF-8). Control tokens give their own text. id in [0, n_vocab).
    virtual std::string_view token_bytes(TokenId id) const = 0;
    // The same for a token that begins a text: without the space that encode() puts before one (SentencePiece).
    // What continues a text, as an answer does its prompt, keeps the space: token_bytes().
    virtual std::string_view leading_bytes(TokenId id) const { return token_bytes(id); }
    virtual TokenKind token_kind(TokenId id) const = 0;
    virtual bool is_end_of_generation(TokenId id) const = 0;  // EOS, EOT, EOM of the file, and <|im_end|>-like names
    virtual std::span<const TokenId> end_of_generation_ids() const = 0;
    virtual TokenId bos_id() const = 0;  // -1 when the file has none
    virtual TokenId eos_id() const = 0;
    virtual std::string_view pre_tokenizer() const = 0;
};

}  // namespace text
