// Byte-level BPE: normal form where the model wants it, pre-tokens, merges inside each.
#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer_common.h"
#include "text/unicode_nfc.h"

namespace text {

namespace {

class BpeTokenizer final : public VocabularyTokenizer {
  public:
    explicit BpeTokenizer(BpeVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

  protected:
    const Vocabulary& vocabulary() const override { return vocabulary_; }

    void encode_fragment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const override {
        std::string repaired;
        if (!base::utf8::is_valid(text)) text = repaired = base::utf8::replace_invalid(text);
        if (vocabulary_.pre->nfc && !is_surely_nfc(text)) text = repaired = nfc(text);
        PreTokens pre_tokens(*vocabulary_.pre, text);
        for (std::string_view piece; pre_tokens.next(piece);) {
            if (vocabulary_.pre->whole_first) {
                const TokenId id = vocabulary_.whole.find(piece, [&](TokenId other) { return vocabulary_.bytes(other); });
                if (id >= 0) {
                    out.push_back(id);
                    continue;
                }
            }
            merge(piece, vocabulary_.byte_tokens, vocabulary_.merges, scratch.merge, out);
        }
    }

  private:
    BpeVocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeVocabulary vocabulary) { return std::make_unique<BpeTokenizer>(std::move(vocabulary)); }

}  // namespace text
