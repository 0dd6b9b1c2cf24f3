// SentencePiece BPE: spaces are written as U+2581, and most models put one before the text.
#include "base/utf8.h"
#include "text/tokenizer_common.h"

namespace text {

namespace {

class SpmTokenizer final : public VocabularyTokenizer {
  public:
    explicit SpmTokenizer(SpmVocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}

    // The space that encode() put before a text is no part of the text.
    std::string_view leading_bytes(TokenId id) const override {
        std::string_view bytes = token_bytes(id);
        const TokenKind kind = token_kind(id);
        const bool piece = kind == TokenKind::normal || kind == TokenKind::user_defined;
        if (vocabulary_.add_space_prefix && piece && bytes.starts_with(' ')) bytes.remove_prefix(1);
        return bytes;
    }

  protected:
    const Vocabulary& vocabulary() const override { return vocabulary_; }
    void prepare(std::string_view text, std::string& out) const override { spm::escape(text, out); }

    // Every fragment begins a text: models were trained on texts with special tokens between them, each encoded by itself.
    void encode_fragment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const override {
        std::string& whole = scratch.spm.text;
        whole.clear();
        if (vocabulary_.add_space_prefix) whole += spm::space;
        if (base::utf8::is_valid(text)) {
            whole += text;
        } else {
            whole += base::utf8::replace_invalid(text);
        }
        spm::encode(whole, vocabulary_, scratch.spm, out);
    }

  private:
    SpmVocabulary vocabulary_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_spm_tokenizer(SpmVocabulary vocabulary) { return std::make_unique<SpmTokenizer>(std::move(vocabulary)); }

}  // namespace text
