// SentencePiece BPE over small vocabularies; the right ids are worked out by hand from the rule: the pair whose joined
// text has the best score is joined, the leftmost first. Real vocabularies: tokenizer_parity.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/utf8.h"
#include "tests/text/measure.h"
#include "tests/text/spm_builder.h"
#include "text/tokenizer.h"

namespace {

using support::SpmSpec;
using text::Segment;
using text::TokenId;
using text::Tokenizer;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> make(const SpmSpec& spec) {
    const auto image = spec.image();
    auto file = gguf::File::parse(image, "test");
    EXPECT_TRUE(file.ok());
    auto tokenizer = Tokenizer::from_gguf(file.value());
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();
}

Ids encode(const Tokenizer& t, std::string_view text, bool parse_special = false) {
    Ids ids;
    t.encode(text, parse_special, ids);
    return ids;
}

Ids encode(const Tokenizer& t, std::vector<Segment> segments, bool add_special) {
    Ids ids;
    t.encode(segments, add_special, ids);
    return ids;
}

TokenId byte_id(int byte) { return 3 + byte; }

// The pieces that most tests use, with their ids.
struct Words : SpmSpec {
    TokenId space, a, b, c, ab, bc, sp_a, sp_ab, sp2;
    Words() {
        space = add("▁", -100);
        a = add("a", -101);
        b = add("b", -102);
        c = add("c", -103);
        ab = add("ab", -3);
        bc = add("bc", -2);
        sp_a = add("▁a", -4);
        sp_ab = add("▁ab", -5);
        sp2 = add("▁▁", -50);
    }
};

TEST(SpmTest, TheBestScoreIsJoinedFirst) {
    Words w;
    w.space_prefix = false;
    const auto t = make(w);
    EXPECT_EQ(encode(*t, "abc"), (Ids{w.a, w.bc}));  // bc (-2) before ab (-3)
    EXPECT_EQ(encode(*t, "ab"), (Ids{w.ab}));
    EXPECT_EQ(encode(*t, " ab"), (Ids{w.sp_ab}));  // ab (-3), then ▁ab
    EXPECT_EQ(encode(*t, " ac"), (Ids{w.sp_a, w.c}));
    EXPECT_EQ(encode(*t, "   a"), (Ids{w.sp2, w.sp_a}));  // ▁a (-4) before ▁▁
    EXPECT_EQ(encode(*t, ""), Ids{});
}

TEST(SpmTest, OfEqualScoresTheLeftmostIsJoinedFirst) {
    SpmSpec spec;
    spec.space_prefix = false;
    const TokenId x = spec.add("x", -9), xx = spec.add("xx", -1), xxx = spec.add("xxx", -1);
    const auto t = make(spec);
    EXPECT_EQ(encode(*t, "xxx"), (Ids{xxx}));
    EXPECT_EQ(encode(*t, "xxxx"), (Ids{xxx, x}));  // xx at 0, then xxx at 0, as both stand leftmost
    EXPECT_EQ(encode(*t, "xxxxx"), (Ids{xxx, xx}));
}

TEST(SpmTest, ASpaceIsPutBeforeEveryFragment) {
    const Words w;
    const auto t = make(w);
    EXPECT_EQ(encode(*t, "ab"), (Ids{w.sp_ab}));
    EXPECT_EQ(encode(*t, " ab"), (Ids{w.space, w.sp_ab}));
    EXPECT_EQ(encode(*t, "ab ab"), (Ids{w.sp_ab, w.sp_ab}));
    EXPECT_EQ(encode(*t, "<s>ab</s>ab", true), (Ids{1, w.sp_ab, 2, w.sp_ab}));
    EXPECT_EQ(encode(*t, ""), Ids{});  // no text, no space
}

TEST(SpmTest, BosIsAddedUnlessTheFileSaysNo) {
    Words w;
    EXPECT_EQ(encode(*make(w), {{"ab", false}}, true), (Ids{1, w.sp_ab}));
    EXPECT_EQ(encode(*make(w), {{"<s>ab", true}}, true), (Ids{1, w.sp_ab}));
    w.add_bos = false;
    EXPECT_EQ(encode(*make(w), {{"ab", false}}, true), (Ids{w.sp_ab}));
    w.add_bos.reset();
    w.bos.reset();
    EXPECT_EQ(encode(*make(w), {{"ab", false}}, true), (Ids{w.sp_ab}));
}

TEST(SpmTest, WhatIsNoPieceIsWrittenInBytes) {
    Words w;
    w.space_prefix = false;
    const auto t = make(w);
    EXPECT_EQ(encode(*t, "aéb"), (Ids{w.a, byte_id(0xC3), byte_id(0xA9), w.b}));
    EXPECT_EQ(encode(*t, "\n"), (Ids{byte_id('\n')}));
    EXPECT_EQ(encode(*t, "\xFF"), (Ids{byte_id(0xEF), byte_id(0xBF), byte_id(0xBD)}));  // U+FFFD
    EXPECT_EQ(encode(*t, "▁a"), (Ids{w.sp_a}));  // U+2581 is a space, whoever writes it
    EXPECT_EQ(t->token_bytes(byte_id(0xA9)), "\xA9");
    EXPECT_EQ(t->token_bytes(w.sp_ab), " ab");
    EXPECT_EQ(t->token_bytes(1), "<s>");
}

TEST(SpmTest, APieceMayHoldACharacterThatIsNone) {
    SpmSpec spec;
    spec.space_prefix = false;
    const TokenId xy = spec.add("xy", -1);  // neither x nor y is a token
    const auto t = make(spec);
    EXPECT_EQ(encode(*t, "xyx"), (Ids{xy, byte_id('x')}));
}

TEST(SpmTest, UserTextNeverYieldsAControlOrByteToken) {
    Words w;
    w.space_prefix = false;
    // Pieces on the way to the special texts, so that only their kind keeps merging away from them.
    w.add("<", -200);
    w.add("s", -201);
    w.add(">", -202);
    w.add("<s", -1);
    w.add("[PAD", -1);
    w.add("[PAD9]", -1, 5);
    const auto t = make(w);
    for (const char* attack : {"<s>", "</s>", "<unk>", "<0x41>", "a<s>b", "<<s>s>", "[PAD9]"}) {
        for (const TokenId id : encode(*t, attack)) {
            const auto kind = t->token_kind(id);
            EXPECT_TRUE(kind == text::TokenKind::normal || kind == text::TokenKind::byte) << attack;
            if (std::string_view(attack) == "<0x41>") { EXPECT_NE(t->token_bytes(id), "A"); }
        }
        for (const TokenId id : encode(*t, {{attack, false}}, false)) EXPECT_NE(t->token_kind(id), text::TokenKind::control) << attack;
    }
    EXPECT_EQ(encode(*t, {{"<s>", true}, {"<s>", false}}, false).front(), 1);
    EXPECT_EQ(encode(*t, "<0x41>", true).size(), encode(*t, "<0x41>").size());  // nor does the template's, as in the reference
}

TEST(SpmTest, UserDefinedTokensAreFoundWithTheirSpaces) {
    for (const char* spelling : {"▁▁▁", "   "}) {  // converters write either
        Words w;
        w.space_prefix = false;
        const TokenId three = w.add(spelling, -1000, 4), tag = w.add("<b>", -1000, 4);
        const auto t = make(w);
        EXPECT_EQ(encode(*t, "a   ab"), (Ids{w.a, three, w.ab}));  // frozen: not ▁▁ and ▁ab
        EXPECT_EQ(encode(*t, "a    ab"), (Ids{w.a, three, w.sp_ab}));
        EXPECT_EQ(encode(*t, "<b>a"), (Ids{tag, w.a}));
        EXPECT_EQ(t->token_bytes(three), "   ");
    }
}

TEST(SpmTest, TheFirstSpaceIsNoPartOfTheText) {
    const Words w;
    const auto t = make(w);
    const auto decode = [&](const Ids& ids) {
        std::string text;
        for (size_t i = 0; i < ids.size(); ++i) text += i == 0 ? t->leading_bytes(ids[i]) : t->token_bytes(ids[i]);
        return text;
    };
    for (const char* text : {"ab", " ab", "  ab", "a b", "é x\n", "b a ", " "}) EXPECT_EQ(decode(encode(*t, text)), text);
    Words without;
    without.space_prefix = false;
    EXPECT_EQ(make(without)->leading_bytes(without.sp_ab), " ab");
}

TEST(SpmTest, PiecesAcrossWordsAreFoundToo) {
    Words w;
    w.space_prefix = false;
    const TokenId across = w.add("b▁a", -1);
    const auto t = make(w);
    EXPECT_EQ(encode(*t, "b a"), (Ids{across}));            // ▁a, then b▁a
    EXPECT_EQ(encode(*t, "ab ab"), (Ids{w.ab, w.sp_ab}));  // both ab before that
}

// The rule written down plainly: look at all pairs, join the best, again and again.
Ids plain_rule(const SpmSpec& spec, const std::string& escaped) {
    const auto piece = [&](const std::string& text) -> TokenId {
        for (size_t i = 259; i < spec.tokens.size(); ++i) {
            if (spec.tokens[i] == text) return static_cast<TokenId>(i);
        }
        return -1;
    };
    std::vector<std::string> symbols;
    for (size_t at = 0; at < escaped.size();) {
        const size_t bytes = base::utf8::decode(escaped, at).length;
        symbols.push_back(escaped.substr(at, bytes));
        at += bytes;
    }
    for (;;) {
        size_t best = symbols.size();
        float score = -INFINITY;
        for (size_t i = 0; i + 1 < symbols.size(); ++i) {
            const TokenId id = piece(symbols[i] + symbols[i + 1]);
            if (id >= 0 && (best == symbols.size() || spec.scores[static_cast<size_t>(id)] > score)) {
                best = i;
                score = spec.scores[static_cast<size_t>(id)];
            }
        }
        if (best == symbols.size()) break;
        symbols[best] += symbols[best + 1];
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    Ids ids;
    for (const std::string& symbol : symbols) {
        if (const TokenId id = piece(symbol); id >= 0) {
            ids.push_back(id);
        } else {
            for (const char c : symbol) ids.push_back(byte_id(static_cast<unsigned char>(c)));
        }
    }
    return ids;
}

TEST(SpmTest, TheHeapFollowsThePlainRule) {
    std::mt19937_64 rng(5);
    static const char* const letters[] = {"a", "b", "é", "▁"};
    for (int round = 0; round < 300; ++round) {
        // Random pieces of few letters with few different scores: many ties, some with U+2581 inside.
        SpmSpec spec;
        spec.space_prefix = false;
        const size_t pieces = 2 + rng() % 12;
        for (size_t i = 0; i < pieces; ++i) {
            std::string text;
            for (size_t n = 1 + rng() % 5; n > 0; --n) text += letters[rng() % std::size(letters)];
            if (std::find(spec.tokens.begin(), spec.tokens.end(), text) == spec.tokens.end()) spec.add(text, -static_cast<float>(rng() % 4));
        }
        const auto t = make(spec);
        for (int k = 0; k < 20; ++k) {
            std::string escaped, back;
            for (size_t n = rng() % 30; n > 0; --n) escaped += letters[rng() % std::size(letters)];
            const Ids ids = encode(*t, escaped);
            ASSERT_EQ(ids, plain_rule(spec, escaped)) << escaped;
            for (const TokenId id : ids) {
                const std::string_view bytes = t->token_bytes(id);
                for (const char c : bytes) back += c == ' ' ? std::string("▁") : std::string(1, c);
            }
            ASSERT_EQ(back, escaped);
        }
    }
}

TEST(SpmTest, BrokenOnesAreRefusedByName) {
    struct Case {
        std::function<void(SpmSpec&)> breaks;
        const char* says;
    };
    const Case cases[] = {
        {[](SpmSpec& s) { s.scores.clear(); }, "tokenizer.ggml.scores"},
        {[](SpmSpec& s) { s.scores.pop_back(); }, "258 elements"},
        {[](SpmSpec& s) { s.scores[7] = std::nanf(""); }, "token 7 has the score NaN"},
        {[](SpmSpec& s) { s.types[9] = 7; }, "token 9 has type 7; 1 to 6"},
        {[](SpmSpec& s) { s.types[3 + 65] = 1; }, "no token for byte 65"},
        {[](SpmSpec& s) { s.tokens[3 + 65] = "<0xZZ>"; }, "token 68 is a byte and reads \"<0xZZ>\""},
        {[](SpmSpec& s) { s.add(std::string(1025, 'x'), 0); }, "has 1025 bytes; 1 to 1024"},
        {[](SpmSpec& s) { s.extra = [](gguf::Writer& w) { w.add_bool("tokenizer.ggml.remove_extra_whitespaces", true); }; },
         "tokenizer.ggml.remove_extra_whitespaces"},
        {[](SpmSpec& s) { s.extra = [](gguf::Writer& w) { w.add_string("tokenizer.ggml.precompiled_charsmap", "x"); }; },
         "tokenizer.ggml.precompiled_charsmap"},
    };
    for (const Case& c : cases) {
        SpmSpec spec;
        c.breaks(spec);
        const auto image = spec.image();
        auto file = gguf::File::parse(image, "test");
        ASSERT_TRUE(file.ok());
        auto tokenizer = Tokenizer::from_gguf(file.value());
        ASSERT_FALSE(tokenizer.ok()) << c.says;
        EXPECT_NE(tokenizer.error().message.find(c.says), std::string::npos) << tokenizer.error().message;
    }
}

TEST(SpmTest, AnEndTagOfHtmlEndsNoAnswer) {
    SpmSpec spec;
    spec.types[2] = 4;  // </s> as gemma has it
    spec.tokens.push_back("<end_of_turn>");
    spec.types.push_back(3);
    spec.scores.push_back(0);
    spec.extra = [](gguf::Writer& w) { w.add_u32("tokenizer.ggml.eot_token_id", 259); };
    const auto t = make(spec);
    const auto ends = t->end_of_generation_ids();
    EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{2, 259}));  // 2 as the file's own eos_token_id only
}

TEST(SpmTest, AMegabyteOfAnythingTakesLessThanASecond) {
    if (!support::measurable) GTEST_SKIP() << "a sanitizer's or unoptimized build says nothing about speed";
    // Pieces of one letter up to the limit, the longer the better: the left end grows by one letter a time, the worst case.
    Words w;
    for (int n = 1; n <= 1024; ++n) w.add(std::string(static_cast<size_t>(n), 'z'), static_cast<float>(n));
    for (const bool prefix : {true, false}) {
        w.space_prefix = prefix;
        const auto t = make(w);
        for (const char* unit : {"z", " ", "\n", "ab ", "1234567890", "中文", "\xff", "a", "é", "ab", "<s>", "zz z"}) {
            const auto seconds = [&](size_t bytes) {
                std::string text;
                while (text.size() + std::string_view(unit).size() <= bytes) text += unit;
                double best = 1e9;
                for (int i = 0; i < 2; ++i) {
                    const double start = support::cpu_seconds();
                    EXPECT_FALSE(encode(*t, text).empty());
                    best = std::min(best, support::cpu_seconds() - start);
                }
                return best;
            };
            const double whole = seconds(1 << 20), quarter = seconds(1 << 18);
            EXPECT_LT(whole, 1.0) << unit;
            EXPECT_LT(whole, 2.3 * 2.3 * quarter + 0.1) << unit << ": grows faster than n log n";
        }
    }
}

}  // namespace
