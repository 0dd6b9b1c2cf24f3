// Loading a SentencePiece BPE vocabulary (GGUF "llama").
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/limits.h"
#include "text/spm.h"
#include "text/vocabulary_loader.h"

namespace text {

namespace {

using base::cat;
using loader::bad;
using loader::quoted;
using loader::scores_key;
using loader::Step;
using loader::tokens_key;

// The byte of "<0xNN>", or -1.
int byte_of(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
    int value = 0;
    for (const char c : text.substr(3, 2)) {
        if (c >= '0' && c <= '9') {
            value = value * 16 + (c - '0');
        } else if (c >= 'A' && c <= 'F') {
            value = value * 16 + (c - 'A' + 10);
        } else {
            return -1;
        }
    }
    return value;
}

class SpmLoader {
  public:
    explicit SpmLoader(const gguf::File& file) : file_(file), common_(file, vocabulary_) {}

    base::Result<SpmVocabulary> load() {
        for (const auto step : {&SpmLoader::options, &SpmLoader::tokens, &SpmLoader::scores, &SpmLoader::bytes, &SpmLoader::pieces, &SpmLoader::special}) {
            if (auto error = (this->*step)()) return std::move(*error);
        }
        return std::move(vocabulary_);
    }

  private:
    Step options() {
        if (file_.find(loader::pre_key)) {  // SentencePiece has no pre-tokenizer; the name is shown only
            auto pre = file_.get_string(loader::pre_key);
            if (!pre) return pre.take_error();
            vocabulary_.pre_tokenizer = pre.value();
        }
        if (auto error = common_.flag("tokenizer.ggml.add_space_prefix", vocabulary_.add_space_prefix)) return error;
        // The normalizers of other SentencePiece models change the text; those of these families don't.
        bool remove_spaces = false;
        if (auto error = common_.flag("tokenizer.ggml.remove_extra_whitespaces", remove_spaces)) return error;
        if (remove_spaces) return loader::unsupported(file_, "tokenizer.ggml.remove_extra_whitespaces", "true", "false");
        if (file_.find("tokenizer.ggml.precompiled_charsmap")) {
            return loader::unsupported(file_, "tokenizer.ggml.precompiled_charsmap", "a character map", "none");
        }
        return {};
    }

    Step tokens() {
        if (auto error = common_.tokens()) return error;
        return common_.types(6);
    }

    Step scores() {
        auto scores = file_.get_floats(scores_key);
        if (!scores) return scores.take_error();
        const auto& values = scores.value();
        if (values.size() != common_.texts().size()) return common_.wrong_length(scores_key, values.size());
        for (size_t i = 0; i < values.size(); ++i) {
            if (std::isnan(values[i])) return bad(file_, scores_key, cat("token ", i, " has the score NaN; numbers are allowed"));
        }
        std::vector<uint32_t> order(values.size());
        std::iota(order.begin(), order.end(), 0u);
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] > values[b]; });
        vocabulary_.ranks.resize(values.size());
        uint32_t rank = 0;
        for (size_t i = 0; i < order.size(); ++i) {
            if (i > 0 && values[order[i]] != values[order[i - 1]]) ++rank;
            vocabulary_.ranks[order[i]] = rank;
        }
        return {};
    }

    Step bytes() {
        vocabulary_.byte_tokens.fill(-1);
        for (size_t i = 0; i < common_.texts().size(); ++i) {
            if (common_.kind(static_cast<TokenId>(i)) != TokenKind::byte) continue;
            const int byte = byte_of(common_.texts()[i]);
            if (byte < 0) {
                return bad(file_, tokens_key, cat("token ", i, " is a byte and reads ", quoted(common_.texts()[i]), "; <0x00> to <0xFF> are allowed"));
            }
            vocabulary_.byte_tokens[static_cast<size_t>(byte)] = static_cast<TokenId>(i);
        }
        for (size_t byte = 0; byte < 256; ++byte) {
            if (vocabulary_.byte_tokens[byte] < 0) {
                return bad(file_, tokens_key, cat("no token for byte ", byte, "; SentencePiece without all of <0x00> to <0xFF> is not built"));
            }
        }
        const auto bytes_of = [&](TokenId id, std::string& out) {
            const std::string_view text = common_.texts()[static_cast<size_t>(id)];
            switch (common_.kind(id)) {
                case TokenKind::byte: out += static_cast<char>(byte_of(text)); break;
                case TokenKind::control:
                case TokenKind::unknown: out += text; break;
                default: spm::unescape(text, out);
            }
        };
        const auto match_of = [&](TokenId id, std::string& out) { spm::escape(common_.texts()[static_cast<size_t>(id)], out); };
        return common_.bytes(bytes_of, match_of);
    }

    // What merging may give: normal and user-defined tokens. A user's text must never become another one.
    Step pieces() {
        vocabulary_.pieces.reserve(vocabulary_.n_vocab());
        vocabulary_.piece_begin.reserve(vocabulary_.n_vocab() + size_t{1});
        vocabulary_.piece_begin.push_back(0);
        vocabulary_.words_apart = true;
        for (TokenId id = 0; id < static_cast<TokenId>(vocabulary_.n_vocab()); ++id) {
            const TokenKind kind = common_.kind(id);
            const bool merges = kind == TokenKind::normal || kind == TokenKind::user_defined;
            if (merges) spm::escape(common_.texts()[static_cast<size_t>(id)], vocabulary_.piece_arena);
            vocabulary_.piece_begin.push_back(static_cast<uint32_t>(vocabulary_.piece_arena.size()));
            if (!merges) continue;
            const std::string_view piece = vocabulary_.piece(id);
            if (piece.size() > limits::vocab_piece_bytes) {
                return bad(file_, tokens_key, cat("token ", id, " has ", piece.size(), " bytes; 1 to ", limits::vocab_piece_bytes, " are allowed"));
            }
            if (spm::next_word(piece) < piece.size()) vocabulary_.words_apart = false;
            // Two tokens that differ in how they write a space are one piece: the first.
            if (vocabulary_.pieces.add(id, [&](TokenId other) { return vocabulary_.piece(other); }) == TokenLookup::Added::crowded) {
                return bad(file_, tokens_key, "token texts collide; this file was made to do so");
            }
        }
        return {};
    }

    Step special() { return common_.special(true); }

    const gguf::File& file_;
    SpmVocabulary vocabulary_;
    loader::Common common_;
};

}  // namespace

base::Result<SpmVocabulary> load_spm_vocabulary(const gguf::File& file) { return SpmLoader(file).load(); }

}  // namespace text
