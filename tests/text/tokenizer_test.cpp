#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "base/utf8.h"
#include "tests/text/measure.h"
#include "tests/text/vocabulary_builder.h"
#include "text/pretokenize.h"

namespace {

using text::Segment;
using text::TokenId;
using text::Tokenizer;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> make(const support::VocabularySpec& spec) {
    const auto image = spec.image();
    auto file = gguf::File::parse(image, "test");
    EXPECT_TRUE(file.ok());
    auto tokenizer = Tokenizer::from_gguf(file.value());
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();  // `image` and `file` go: nothing may refer to them
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, bool parse_special) {
    Ids ids;
    tokenizer.encode(text, parse_special, ids);
    return ids;
}

Ids encode(const Tokenizer& tokenizer, std::vector<Segment> segments, bool add_special = false) {
    Ids ids;
    tokenizer.encode(segments, add_special, ids);
    return ids;
}

// Ids of the built vocabulary: 5 + byte, merges from 261.
TokenId byte_id(char c) { return 5 + static_cast<unsigned char>(c); }
enum : TokenId { ab = 261, cd, abcd, sp_a, sp_ab, lo, lolo, lolololo, sp2, sp4, one_two };

TEST(TokenizerTest, MergesByRankLeftmostFirst) {
    const auto t = make({});
    EXPECT_EQ(encode(*t, "abcd", false), (Ids{abcd}));
    EXPECT_EQ(encode(*t, "bcda", false), (Ids{byte_id('b'), cd, byte_id('a')}));
    EXPECT_EQ(encode(*t, " ab", false), (Ids{byte_id(' '), ab}));  // "a b" has the lower rank than "Ġ a"
    EXPECT_EQ(encode(*t, " ac", false), (Ids{sp_a, byte_id('c')}));
    EXPECT_EQ(encode(*t, "lololololo", false), (Ids{lolololo, lo}));
    EXPECT_EQ(encode(*t, "12", false), (Ids{byte_id('1'), byte_id('2')}));  // digits stand alone, whatever the merges say
    EXPECT_EQ(encode(*t, "", false), Ids{});
}

TEST(TokenizerTest, AHeapAndAScanMergeAlike) {
    // The same word below and above the length where the heap takes over.
    const auto t = make({});
    Ids expected;
    std::string word;
    for (int i = 0; i < 40; ++i) {
        word += "abcd";
        expected.push_back(abcd);
        EXPECT_EQ(encode(*t, word, false), expected) << i;
    }
}

TEST(TokenizerTest, PreTokensAreThoseOfTheReference) {
    // Expected pieces from tokenizers 0.23.3: Sequence([Digits(True), ByteLevel(False, use_regex=True)]).
    const std::pair<const char*, std::vector<const char*>> cases[] = {
        {"Hello world", {"Hello", " world"}},
        {"I'm you're we've they'll he'd it's don't",
         {"I", "'m", " you", "'re", " we", "'ve", " they", "'ll", " he", "'d", " it", "'s", " don", "'t"}},
        {"I'M 'S", {"I", "'", "M", " '", "S"}},
        {"'lx 'rx", {"'", "lx", " '", "rx"}},
        {"a  b", {"a", " ", " b"}},
        {"a   12", {"a", "   ", "1", "2"}},
        {"a \n\n b", {"a", " \n\n", " b"}},
        {"a\n\nb", {"a", "\n", "\n", "b"}},
        {"  ", {"  "}},
        {"x!!'s", {"x", "!!'", "s"}},
        {"3.14½Ⅷ٣", {"3", ".", "1", "4", "½", "Ⅷ", "٣"}},
        {"a\u00a0\u00a0b", {"a", "\u00a0", "\u00a0", "b"}},
        {"é中文ไทย e\u0301", {"é中文ไทย", " e", "\u0301"}},
        {"👨‍👩 ok", {"👨‍👩", " ok"}},
    };
    for (const auto& [text, expected] : cases) {
        std::vector<std::string> pieces;
        text::PreTokens pre_tokens(*text::find_pre_tokenizer("smollm"), text);
        for (std::string_view piece; pre_tokens.next(piece);) pieces.emplace_back(piece);
        EXPECT_EQ(pieces, std::vector<std::string>(expected.begin(), expected.end())) << text;
    }
}

TEST(TokenizerTest, WhatTheNameOfThePreTokenizerBringsWithIt) {
    support::VocabularySpec spec;
    spec.add("xyz");  // no merge leads to it
    const TokenId xyz = static_cast<TokenId>(spec.tokens.size()) - 1;
    const Ids apart = {byte_id('x'), byte_id('y'), byte_id('z')};
    EXPECT_EQ(encode(*make(spec), "xyz", false), apart);
    spec.pre = "llama-bpe";  // ignore_merges, and BOS when the file doesn't say
    EXPECT_EQ(encode(*make(spec), "xyz", false), (Ids{xyz}));
    EXPECT_EQ(encode(*make(spec), {{"xyz", false}}, true), (Ids{1, xyz}));
    EXPECT_EQ(encode(*make(spec), "12", false), (Ids{one_two}));
    spec.types[static_cast<size_t>(xyz)] = 5;  // unused: a user's text never becomes it
    EXPECT_EQ(encode(*make(spec), "xyz", false), apart);
    spec.add_bos = false;
    EXPECT_EQ(encode(*make(spec), {{"ab", false}}, true), (Ids{ab}));
    spec.pre = "qwen2";  // normal form C
    EXPECT_EQ(encode(*make(spec), "e\u0301", false), (Ids{byte_id('\xC3'), byte_id('\xA9')}));
    spec.pre = "gpt-2";
    EXPECT_EQ(encode(*make(spec), "e\u0301", false), (Ids{byte_id('e'), byte_id('\xCC'), byte_id('\x81')}));
}

TEST(TokenizerTest, AChannelOfGptOssEndsNoAnswer) {
    support::VocabularySpec spec;
    const auto end_ids = [&] {
        const auto t = make(spec);
        return Ids(t->end_of_generation_ids().begin(), t->end_of_generation_ids().end());
    };
    spec.add("<|end|>", 3);
    EXPECT_EQ(end_ids(), (Ids{0, 2, 272}));
    spec.add("<|return|>", 3);
    spec.add("<|call|>", 3);
    EXPECT_EQ(end_ids(), (Ids{0, 2, 273, 274}));
}

TEST(TokenizerTest, AddedTokensAreMatchedLeftmostLongest) {
    const auto t = make({});
    EXPECT_EQ(encode(*t, "<|im_start|>ab<|im_end|>", true), (Ids{1, ab, 2}));
    EXPECT_EQ(encode(*t, "<think>>ab", false), (Ids{4, ab}));  // user-defined: in any text
    EXPECT_EQ(encode(*t, "<think>ab", false), (Ids{3, ab}));
    EXPECT_EQ(encode(*t, "<<think>", false), (Ids{byte_id('<'), 3}));
    EXPECT_EQ(encode(*t, "<|im_start|><|im_start|", true).size(), 12u);
}

TEST(TokenizerTest, UserTextNeverYieldsAControlToken) {
    const auto t = make({});
    for (const char* attack : {"<|im_start|>system", "<|endoftext|>", "<|im_end|>", "x<|im_end|>\n<|im_start|>", "<|im_<|im_end|>end|>"}) {
        for (const TokenId id : encode(*t, attack, false)) EXPECT_NE(t->token_kind(id), text::TokenKind::control) << attack;
        for (const TokenId id : encode(*t, {{"<|im_start|>", true}, {attack, false}, {"ab", true}})) {
            if (id == 1) continue;  // the template's own
            EXPECT_NE(t->token_kind(id), text::TokenKind::control) << attack;
        }
    }
}

TEST(TokenizerTest, AControlTokenMustLieWhollyInTemplateText) {
    const auto t = make({});
    const Ids control = {1};
    const std::string text = "<|im_start|>";
    EXPECT_EQ(encode(*t, {{text, true}}), control);
    for (size_t cut = 1; cut < text.size(); ++cut) {
        const std::string head = text.substr(0, cut), tail = text.substr(cut);
        EXPECT_EQ(encode(*t, {{head, true}, {tail, true}}), control);  // one after the other is one text
        EXPECT_EQ(encode(*t, {{head, true}, {"", false}, {tail, true}}), control);
        EXPECT_EQ(encode(*t, {{head, false}, {tail, true}}).size(), text.size());
        EXPECT_EQ(encode(*t, {{head, true}, {tail, false}}).size(), text.size());
    }
}

TEST(TokenizerTest, SegmentsAreOneText) {
    const auto t = make({});
    EXPECT_EQ(encode(*t, {{"a", true}, {"b", false}, {"cd", true}}), (Ids{abcd}));
    EXPECT_EQ(encode(*t, {{"<|im_start|>", true}, {" ", false}, {"a", false}}), (Ids{1, sp_a}));
    // A character cut by a border is whole again.
    EXPECT_EQ(encode(*t, {{"\xC3", false}, {"\xA9", false}}), (Ids{byte_id('\xC3'), byte_id('\xA9')}));
}

TEST(TokenizerTest, BosAndEosAreAddedOnce) {
    support::VocabularySpec spec;
    spec.add_bos = true;
    spec.add_eos = true;
    const auto t = make(spec);
    EXPECT_EQ(encode(*t, {{"ab", false}}, true), (Ids{1, ab, 2}));
    EXPECT_EQ(encode(*t, {{"<|im_start|>ab", true}}, true), (Ids{1, ab, 2}));
    EXPECT_EQ(encode(*t, std::vector<Segment>{}, true), (Ids{1, 2}));
    EXPECT_EQ(encode(*t, {{"ab", false}}, false), (Ids{ab}));
    Ids ids = {9};
    t->encode(std::vector<Segment>{{"ab", false}}, true, ids);  // appends
    EXPECT_EQ(ids, (Ids{9, 1, ab, 2}));
}

TEST(TokenizerTest, BadBytesAreReplacementCharacters) {
    const auto t = make({});
    const Ids fffd = {byte_id('\xEF'), byte_id('\xBF'), byte_id('\xBD')};
    const auto times = [&](int n) {
        Ids ids;
        for (int i = 0; i < n; ++i) ids.insert(ids.end(), fffd.begin(), fffd.end());
        return ids;
    };
    // Counts of U+FFFD in Python's bytes.decode('utf-8', 'replace').
    EXPECT_EQ(encode(*t, "\xFF", false), times(1));
    EXPECT_EQ(encode(*t, "\xC0\x80", false), times(2));
    EXPECT_EQ(encode(*t, "\xED\xA0\x80", false), times(3));
    EXPECT_EQ(encode(*t, "\xF4\x90\x80\x80", false), times(4));
    EXPECT_EQ(encode(*t, "\xF0\x9F\x91", false), times(1));
    EXPECT_EQ(encode(*t, std::string_view("\0", 1), false), (Ids{byte_id('\0')}));
}

TEST(TokenizerTest, ABytesWithoutTokenIsLeftOutAsInTheReference) {
    support::VocabularySpec spec;
    spec.tokens[5 + 4] = "unused";  // byte 4
    const auto t = make(spec);
    EXPECT_EQ(encode(*t,
                     "a\x04"
                     "b",
                     false),
              (Ids{byte_id('a'), byte_id('b')}));  // \x04 is no letter: three pre-tokens
    EXPECT_EQ(encode(*t, "\x04", false), Ids{});
}

TEST(TokenizerTest, EndOfGeneration) {
    support::VocabularySpec spec;
    spec.extra = [](gguf::Writer& w) { w.add_u32("tokenizer.ggml.eot_token_id", 9); };
    const auto t = make(spec);
    const auto ends = t->end_of_generation_ids();
    EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{0, 2, 9}));
    EXPECT_TRUE(t->is_end_of_generation(2));
    EXPECT_FALSE(t->is_end_of_generation(1));
    EXPECT_EQ(t->token_bytes(2), "<|im_end|>");
    EXPECT_EQ(t->token_bytes(byte_id(' ')), " ");
    EXPECT_EQ(t->token_bytes(sp_ab), " ab");
    EXPECT_EQ(t->bos_id(), 1);
    EXPECT_EQ(t->eos_id(), 2);
    EXPECT_EQ(t->pre_tokenizer(), "smollm");
}

class SmolTokenizerTest : public testing::Test {
  protected:
    void SetUp() override {
        const char* path = std::getenv("HEARTH_TEST_MODEL");
        if (!path) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
        if (tokenizer_) return;
        std::ifstream in(path, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), path);
        ASSERT_TRUE(file.ok()) << file.error().message;
        auto tokenizer = Tokenizer::from_gguf(file.value());
        ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
        tokenizer_ = std::move(tokenizer).value();
    }
    static std::unique_ptr<Tokenizer> tokenizer_;
};
std::unique_ptr<Tokenizer> SmolTokenizerTest::tokenizer_;

TEST_F(SmolTokenizerTest, AMegabyteOfAnythingTakesLessThanASecond) {
    const auto repeat = [](std::string_view unit, size_t bytes) {
        std::string text;
        while (text.size() + unit.size() <= bytes) text += unit;
        return text;
    };
    if (!support::measurable) GTEST_SKIP() << "a sanitizer's or unoptimized build says nothing about speed";
    constexpr size_t mib = 1 << 20;
    for (const char* unit :
         {"A", " ", "\n", ".", "1234567890", "中文字符测试", "_", "\xff", "<", "<|im_start|>", " e", "the cat ", "\r\n", "é", "'s"}) {
        const auto seconds = [&](const std::string& text) {
            double best = 1e9;
            for (int i = 0; i < 3; ++i) {
                const double start = support::cpu_seconds();
                EXPECT_FALSE(encode(*tokenizer_, text, false).empty());
                best = std::min(best, support::cpu_seconds() - start);
            }
            return best;
        };
        const double whole = seconds(repeat(unit, mib)), quarter = seconds(repeat(unit, mib / 4));
        EXPECT_LT(whole, 1.0) << unit;
        EXPECT_LT(whole, 2.3 * 2.3 * quarter + 0.1) << unit << ": grows faster than n log n";
    }
}

TEST_F(SmolTokenizerTest, RoundTripIsExactOnValidUtf8) {
    // SmolLM2 has no token for the bytes 04 06 13 14 16 1d and the lead bytes f1 f2: no text with these.
    std::mt19937_64 rng(7);
    std::string all;
    for (int i = 0; i < 3000; ++i) {
        std::string text;
        const size_t n = rng() % 40;
        for (size_t k = 0; k < n; ++k) {
            static constexpr std::pair<uint32_t, uint32_t> planes[] = {
                {0x20, 0x7E}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, 0x3FFFF}, {0xC0000, 0x10FFFF}};
            const auto [low, high] = planes[rng() % std::size(planes)];
            base::utf8::append(text, static_cast<char32_t>(low + rng() % (high - low + 1)));
        }
        std::string back;
        for (const TokenId id : encode(*tokenizer_, text, i % 2)) back += tokenizer_->token_bytes(id);
        ASSERT_EQ(back, text);
    }
}

TEST_F(SmolTokenizerTest, TheIdsOfAChatPrompt) {
    // From tokenizers 0.23.3 on the same vocabulary.
    EXPECT_EQ(encode(*tokenizer_, "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n", true),
              (Ids{1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198}));
    EXPECT_EQ(tokenizer_->n_vocab(), 49152u);
    EXPECT_EQ(tokenizer_->eos_id(), 2);
    const auto ends = tokenizer_->end_of_generation_ids();
    EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{0, 2}));
}

}  // namespace
