// What tokenizers of every kind do alike: segments joined to one text, special tokens found in it, BOS and EOS added.
// A kind encodes the fragments between the special tokens.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/spm.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace text {

class VocabularyTokenizer : public Tokenizer {
  public:
    void encode(std::string_view text, bool parse_special, std::vector<TokenId>& out) const final;
    void encode(std::span<const Segment> segments, bool add_special, std::vector<TokenId>& out) const final;

    uint32_t n_vocab() const final { return vocabulary().n_vocab(); }
    std::string_view token_bytes(TokenId id) const final;
    TokenKind token_kind(TokenId id) const final;
    bool is_end_of_generation(TokenId id) const final;
    std::span<const TokenId> end_of_generation_ids() const final { return vocabulary().end_of_generation; }
    TokenId bos_id() const final { return vocabulary().bos_id; }
    TokenId eos_id() const final { return vocabulary().eos_id; }
    std::string_view pre_tokenizer() const final { return vocabulary().pre_tokenizer; }

  protected:
    struct Scratch {
        MergeScratch merge;
        SpmScratch spm;
    };
    virtual const Vocabulary& vocabulary() const = 0;
    // The text in which added tokens are looked for, appended to `out`. Each byte by itself, so that segments may be cut
    // anywhere.
    virtual void prepare(std::string_view text, std::string& out) const { out += text; }
    // A fragment, not empty, of prepared text: at the beginning or after an added token. Any bytes.
    virtual void encode_fragment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const = 0;

  private:
    // A range [begin, end) of the joined text that the template wrote.
    struct Range {
        size_t begin, end;
    };
    void encode_ranges(std::string_view text, std::span<const Range> ranges, std::vector<TokenId>& out) const;
};

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeVocabulary vocabulary);
std::unique_ptr<Tokenizer> make_spm_tokenizer(SpmVocabulary vocabulary);

}  // namespace text
