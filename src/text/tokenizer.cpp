#include "text/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/pretokenize.h"
#include "text/vocabulary.h"

namespace text {

namespace {

// A range [begin, end) of the joined text that the template wrote.
struct Range {
    size_t begin, end;
};

class BpeTokenizer final : public Tokenizer {
  public:
    explicit BpeTokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
        first_added_.fill(0);
        size_t at = 0;
        for (size_t byte = 0; byte < 256; ++byte) {
            first_added_[byte] = static_cast<uint32_t>(at);
            while (at < vocabulary_.added.size() && static_cast<unsigned char>(vocabulary_.bytes(vocabulary_.added[at])[0]) == byte) ++at;
        }
        first_added_[256] = static_cast<uint32_t>(at);
    }

    void encode(std::string_view text, bool parse_special, std::vector<TokenId>& out) const override {
        if (parse_special) {
            const Range all{0, text.size()};
            encode_ranges(text, {&all, 1}, out);
        } else {
            encode_ranges(text, {}, out);
        }
    }

    // The segments are one text: pre-tokens reach across their borders, as in the reference that sees one string.
    void encode(std::span<const Segment> segments, bool add_special, std::vector<TokenId>& out) const override {
        std::string text;
        std::vector<Range> ranges;
        for (const Segment& segment : segments) {
            const Range range{text.size(), text.size() + segment.text.size()};
            text += segment.text;
            if (!segment.from_template) continue;
            if (!ranges.empty() && ranges.back().end == range.begin) {
                ranges.back().end = range.end;
            } else {
                ranges.push_back(range);
            }
        }
        const size_t first = out.size();
        encode_ranges(text, ranges, out);
        if (!add_special) return;
        if (vocabulary_.add_bos && (out.size() == first || out[first] != vocabulary_.bos_id)) {
            out.insert(out.begin() + static_cast<std::ptrdiff_t>(first), vocabulary_.bos_id);
        }
        if (vocabulary_.add_eos && (out.size() == first || out.back() != vocabulary_.eos_id)) out.push_back(vocabulary_.eos_id);
    }

    uint32_t n_vocab() const override { return vocabulary_.n_vocab(); }
    std::string_view token_bytes(TokenId id) const override {
        check_id(id);
        return vocabulary_.bytes(id);
    }
    TokenKind token_kind(TokenId id) const override {
        check_id(id);
        return vocabulary_.kinds[static_cast<size_t>(id)];
    }
    bool is_end_of_generation(TokenId id) const override {
        const auto& ends = vocabulary_.end_of_generation;
        return std::binary_search(ends.begin(), ends.end(), id);
    }
    std::span<const TokenId> end_of_generation_ids() const override { return vocabulary_.end_of_generation; }
    TokenId bos_id() const override { return vocabulary_.bos_id; }
    TokenId eos_id() const override { return vocabulary_.eos_id; }
    std::string_view pre_tokenizer() const override { return vocabulary_.pre_tokenizer; }

  private:
    void check_id(TokenId id) const {
        CHECK_GE(id, 0);
        CHECK_LT(id, static_cast<TokenId>(n_vocab()));
    }

    struct Match {
        TokenId id = -1;
        size_t bytes = 0;
    };

    // The longest added token at text[at...]. Control tokens must end at or before `special_end`.
    // The candidates lie sorted: each further byte narrows [low, high) by bisection, at most vocab_special_bytes times.
    Match match_added(std::string_view text, size_t at, size_t special_end) const {
        const auto& added = vocabulary_.added;
        const size_t byte = static_cast<unsigned char>(text[at]);
        auto low = added.begin() + first_added_[byte], high = added.begin() + first_added_[byte + 1];
        Match best;
        for (size_t depth = 1; low != high; ++depth) {
            if (vocabulary_.bytes(*low).size() == depth) {  // the shortest sorts first
                const bool plain = vocabulary_.kinds[static_cast<size_t>(*low)] == TokenKind::user_defined;
                if (plain || at + depth <= special_end) best = {*low, depth};
                ++low;
            }
            if (low == high || at + depth >= text.size()) break;
            const unsigned char next = static_cast<unsigned char>(text[at + depth]);
            const auto byte_at = [&](TokenId id) { return static_cast<unsigned char>(vocabulary_.bytes(id)[depth]); };
            low = std::lower_bound(low, high, next, [&](TokenId id, unsigned char value) { return byte_at(id) < value; });
            high = std::upper_bound(low, high, next, [&](unsigned char value, TokenId id) { return value < byte_at(id); });
        }
        return best;
    }

    // `ranges`: where control tokens may be read, sorted and apart.
    void encode_ranges(std::string_view text, std::span<const Range> ranges, std::vector<TokenId>& out) const {
        MergeScratch scratch;
        size_t plain_begin = 0;
        for (size_t at = 0; at < text.size();) {
            while (!ranges.empty() && ranges.front().end <= at) ranges = ranges.subspan(1);
            const size_t byte = static_cast<unsigned char>(text[at]);
            Match match;
            if (first_added_[byte] != first_added_[byte + 1]) {
                const bool inside = !ranges.empty() && ranges.front().begin <= at;
                match = match_added(text, at, inside ? ranges.front().end : 0);
            }
            if (match.bytes == 0) {
                ++at;
                continue;
            }
            encode_plain(text.substr(plain_begin, at - plain_begin), scratch, out);
            out.push_back(match.id);
            at += match.bytes;
            plain_begin = at;
        }
        encode_plain(text.substr(plain_begin), scratch, out);
    }

    void encode_plain(std::string_view text, MergeScratch& scratch, std::vector<TokenId>& out) const {
        std::string repaired;
        if (!base::utf8::is_valid(text)) text = repaired = base::utf8::replace_invalid(text);
        while (!text.empty()) {
            size_t bytes = smollm_pre_token(text);
            // Positions inside a pre-token have 32 bits; no pipeline here makes such a one out of a request within the limits.
            bytes = std::min(bytes, size_t{1} << 30);
            merge(text.substr(0, bytes), vocabulary_.byte_tokens, vocabulary_.merges, scratch, out);
            text.remove_prefix(bytes);
        }
    }

    Vocabulary vocabulary_;
    std::array<uint32_t, 257> first_added_{};  // by first byte: where its tokens begin in vocabulary_.added
};

}  // namespace

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::File& file) {
    auto vocabulary = load_vocabulary(file);
    if (!vocabulary) return vocabulary.take_error();
    return std::unique_ptr<Tokenizer>(new BpeTokenizer(std::move(vocabulary).value()));
}

}  // namespace text
