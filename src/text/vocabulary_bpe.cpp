// Loading a byte-level BPE vocabulary (GGUF "gpt2").
#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/vocabulary_loader.h"

namespace text {

namespace {

using base::cat;
using loader::bad;
using loader::merges_key;
using loader::pre_key;
using loader::quoted;
using loader::scores_key;
using loader::Step;
using loader::tokens_key;

// GPT-2's alphabet: a byte that prints in Latin-1 is written as itself, every other one as U+0100, U+0101, ... in order.
struct Alphabet {
    std::array<int16_t, 0x144> byte_of{};  // by code point; -1 = not of the alphabet

    Alphabet() {
        byte_of.fill(-1);
        uint32_t next = 0x100;
        for (int byte = 0; byte < 256; ++byte) {
            const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
            byte_of[itself ? static_cast<uint32_t>(byte) : next++] = static_cast<int16_t>(byte);
        }
    }
};

class BpeLoader {
  public:
    explicit BpeLoader(const gguf::File& file) : file_(file), common_(file, vocabulary_) {}

    base::Result<BpeVocabulary> load() {
        // Cheap refusals first: a file of another kind is told so before its arrays are read.
        for (const auto step : {&BpeLoader::pre, &BpeLoader::tokens, &BpeLoader::bytes, &BpeLoader::merges, &BpeLoader::special}) {
            if (auto error = (this->*step)()) return std::move(*error);
        }
        return std::move(vocabulary_);
    }

  private:
    Step pre() {
        auto pre = file_.get_string(pre_key);
        if (!pre) return pre.take_error();
        vocabulary_.pre = find_pre_tokenizer(pre.value());
        if (!vocabulary_.pre) return loader::unsupported(file_, pre_key, pre.value(), pre_tokenizer_names());
        vocabulary_.pre_tokenizer = pre.value();
        return {};
    }

    Step tokens() {
        if (auto error = common_.tokens()) return error;
        if (auto error = common_.types(5)) return error;  // 6 is `byte`, which only SentencePiece vocabularies have
        if (file_.find(scores_key)) {  // byte-level BPE has no use for scores, but a wrong length means a broken file
            auto scores = file_.get_floats(scores_key);
            if (!scores) return scores.take_error();
            if (scores.value().size() != common_.texts().size()) return common_.wrong_length(scores_key, scores.value().size());
        }
        return {};
    }

    bool is_plain(TokenId id) const {
        const TokenKind kind = common_.kind(id);
        return kind == TokenKind::normal || kind == TokenKind::user_defined || kind == TokenKind::unused;
    }

    // Token texts to bytes, and the 256 tokens of single bytes.
    Step bytes() {
        static const Alphabet alphabet;
        vocabulary_.byte_tokens.fill(-1);
        std::string decoded;
        const auto bytes_of = [&](TokenId id, std::string& out) {
            const std::string_view text = common_.texts()[static_cast<size_t>(id)];
            // As the reference's decoder: a text outside the alphabet stands for itself.
            decoded.clear();
            bool inside = true;
            for (size_t at = 0; inside && at < text.size();) {
                const auto c = base::utf8::decode(text, at);
                inside = c.code_point < alphabet.byte_of.size() && alphabet.byte_of[c.code_point] >= 0;
                if (inside) decoded += static_cast<char>(alphabet.byte_of[c.code_point]);
                at += c.length;
            }
            if (inside && decoded.size() == 1 && is_plain(id)) vocabulary_.byte_tokens[static_cast<unsigned char>(decoded[0])] = id;
            out += inside && !common_.is_added(id) ? std::string_view(decoded) : text;
        };
        const auto match_of = [&](TokenId id, std::string& out) { out += common_.texts()[static_cast<size_t>(id)]; };
        if (auto error = common_.bytes(bytes_of, match_of)) return error;
        // Real vocabularies lack some rare bytes (SmolLM2: eight control and lead bytes); without these no text can be written.
        for (int byte = 0x20; byte <= 0x7E; ++byte) {
            if (vocabulary_.byte_tokens[static_cast<size_t>(byte)] < 0) return missing_byte(byte);
        }
        if (vocabulary_.byte_tokens['\n'] < 0) return missing_byte('\n');
        return vocabulary_.pre->whole_first ? whole() : Step{};
    }

    Step missing_byte(int byte) {
        return bad(file_, tokens_key, cat("no token for byte ", byte, "; line feed and 32 to 126 must have one each"));
    }

    // What a pre-token may be as a whole: what merging could give too, so neither special nor unused tokens.
    Step whole() {
        vocabulary_.whole.reserve(vocabulary_.n_vocab());
        for (TokenId id = 0; id < static_cast<TokenId>(vocabulary_.n_vocab()); ++id) {
            if (common_.kind(id) != TokenKind::normal) continue;
            if (vocabulary_.whole.add(id, [&](TokenId other) { return vocabulary_.bytes(other); }) == TokenLookup::Added::crowded) {
                return bad(file_, tokens_key, "token texts collide; this file was made to do so");
            }
        }
        return {};
    }

    Step merges() {
        auto merges = file_.get_strings(merges_key);
        if (!merges) return merges.take_error();
        const auto& lines = merges.value();
        if (lines.size() > limits::vocab_merges) {
            return bad(file_, merges_key, cat(lines.size(), " merges; up to ", limits::vocab_merges, " are allowed"));
        }
        vocabulary_.merges.reserve(lines.size());
        std::string joined;
        for (size_t i = 0; i < lines.size(); ++i) {
            const std::string_view line = lines[i];
            const auto bad_merge = [&](const std::string& what) {
                return bad(file_, merges_key, cat("merge ", i, " ", quoted(line), " ", what));
            };
            const size_t space = line.find(' ');
            if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
                line.find(' ', space + 1) != std::string_view::npos) {
                return bad_merge("is not two parts with one space between");
            }
            const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
            joined.assign(left).append(right);
            const TokenId left_id = common_.find(left), right_id = common_.find(right), joined_id = common_.find(joined);
            if (left_id < 0 || right_id < 0) return bad_merge("has a part that is no token");
            if (joined_id < 0) return bad_merge("joins to what is no token");
            // A user's text must never become such a token, so no merge may make one.
            if (!is_plain(joined_id)) return bad_merge(cat("joins to control token ", joined_id));
            switch (vocabulary_.merges.add(left_id, right_id, {static_cast<uint32_t>(i), joined_id})) {
                case HashTable<MergeTable::Merge>::Added::yes: break;
                case HashTable<MergeTable::Merge>::Added::duplicate: return bad_merge("is there twice");
                case HashTable<MergeTable::Merge>::Added::crowded: return bad_merge("collides with others; this file was made to do so");
            }
        }
        return {};
    }

    Step special() { return common_.special(vocabulary_.pre->add_bos); }

    const gguf::File& file_;
    BpeVocabulary vocabulary_;
    loader::Common common_;
};

}  // namespace

base::Result<BpeVocabulary> load_bpe_vocabulary(const gguf::File& file) { return BpeLoader(file).load(); }

}  // namespace text
