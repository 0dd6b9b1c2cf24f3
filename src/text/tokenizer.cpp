#include "text/tokenizer.h"

#include <algorithm>

#include "base/check.h"
#include "text/tokenizer_common.h"
#include "text/vocabulary_loader.h"

namespace text {

namespace {

// One row a kind of vocabulary: tokenizer.ggml.model. Kinds that exist and aren't built are refused like unknown ones.
struct Kind {
    std::string_view model;
    base::Result<std::unique_ptr<Tokenizer>> (*make)(const gguf::File& file);
};

template <auto load, auto make>
base::Result<std::unique_ptr<Tokenizer>> from_file(const gguf::File& file) {
    auto vocabulary = load(file);
    if (!vocabulary) return vocabulary.take_error();
    return make(std::move(vocabulary).value());
}

constexpr Kind kinds[] = {
    {"gpt2", from_file<load_bpe_vocabulary, make_bpe_tokenizer>},
    {"llama", from_file<load_spm_vocabulary, make_spm_tokenizer>},
};
constexpr std::string_view kind_names = "gpt2 (byte-level BPE), llama (SentencePiece BPE)";

}  // namespace

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const gguf::File& file) {
    auto model = file.get_string(loader::model_key);
    if (!model) return model.take_error();
    for (const Kind& kind : kinds) {
        if (kind.model == model.value()) return kind.make(file);
    }
    return loader::unsupported(file, loader::model_key, model.value(), kind_names);
}

void VocabularyTokenizer::encode(std::string_view text, bool parse_special, std::vector<TokenId>& out) const {
    std::string prepared;
    prepare(text, prepared);
    const Range all{0, prepared.size()};
    encode_ranges(prepared, {&all, parse_special ? size_t{1} : size_t{0}}, out);
}

// The segments are one text: pre-tokens reach across their borders, as in the reference that sees one string.
void VocabularyTokenizer::encode(std::span<const Segment> segments, bool add_special, std::vector<TokenId>& out) const {
    std::string text;
    std::vector<Range> ranges;
    for (const Segment& segment : segments) {
        const size_t begin = text.size();
        prepare(segment.text, text);
        if (!segment.from_template) continue;
        if (!ranges.empty() && ranges.back().end == begin) {
            ranges.back().end = text.size();
        } else {
            ranges.push_back({begin, text.size()});
        }
    }
    const Vocabulary& v = vocabulary();
    const size_t first = out.size();
    encode_ranges(text, ranges, out);
    if (!add_special) return;
    if (v.add_bos && (out.size() == first || out[first] != v.bos_id)) out.insert(out.begin() + static_cast<std::ptrdiff_t>(first), v.bos_id);
    if (v.add_eos && (out.size() == first || out.back() != v.eos_id)) out.push_back(v.eos_id);
}

// `ranges`: where control tokens may be read, sorted and apart.
void VocabularyTokenizer::encode_ranges(std::string_view text, std::span<const Range> ranges, std::vector<TokenId>& out) const {
    Scratch scratch;
    size_t plain_begin = 0;
    const auto encode_plain = [&](size_t end) {
        if (end > plain_begin) encode_fragment(text.substr(plain_begin, end - plain_begin), scratch, out);
    };
    for (size_t at = 0; at < text.size();) {
        while (!ranges.empty() && ranges.front().end <= at) ranges = ranges.subspan(1);
        const bool inside = !ranges.empty() && ranges.front().begin <= at;
        const AddedTokens::Match match = vocabulary().added.match(text, at, inside ? ranges.front().end : 0);
        if (match.bytes == 0) {
            ++at;
            continue;
        }
        encode_plain(at);
        out.push_back(match.id);
        at += match.bytes;
        plain_begin = at;
    }
    encode_plain(text.size());
}

std::string_view VocabularyTokenizer::token_bytes(TokenId id) const {
    CHECK_GE(id, 0);
    CHECK_LT(id, static_cast<TokenId>(n_vocab()));
    return vocabulary().bytes(id);
}

TokenKind VocabularyTokenizer::token_kind(TokenId id) const {
    CHECK_GE(id, 0);
    CHECK_LT(id, static_cast<TokenId>(n_vocab()));
    return vocabulary().kinds[static_cast<size_t>(id)];
}

bool VocabularyTokenizer::is_end_of_generation(TokenId id) const {
    const auto& ends = vocabulary().end_of_generation;
    return std::binary_search(ends.begin(), ends.end(), id);
}

}  // namespace text
