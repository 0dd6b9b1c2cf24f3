// Pre-tokens under each family of patterns, and normal form C. Expected pieces: tokenizers 0.23.3 with the published
// patterns (pretokenizer_parity.py compares all of them on random strings); normal forms: examples of UAX #15.
#include "text/pretokenize.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/text/measure.h"
#include "text/unicode_nfc.h"

namespace {

std::vector<std::string> cut(std::string_view name, std::string_view text) {
    const text::PreTokenizer* pre = text::find_pre_tokenizer(name);
    EXPECT_NE(pre, nullptr) << name;
    std::vector<std::string> pieces;
    text::PreTokens tokens(*pre, text);
    for (std::string_view piece; tokens.next(piece);) {
        EXPECT_FALSE(piece.empty());
        pieces.emplace_back(piece);
    }
    return pieces;
}

using Pieces = std::vector<std::string>;

std::vector<std::string> names() {
    std::vector<std::string> all;
    std::string list = text::pre_tokenizer_names() + ", ";
    for (size_t at = 0, end; (end = list.find(", ", at)) != std::string::npos; at = end + 2) all.push_back(list.substr(at, end - at));
    return all;
}

TEST(PreTokenizeTest, NamesAreUnique) {
    const auto all = names();
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
    EXPECT_EQ(text::find_pre_tokenizer("kimi-k2"), nullptr);
    EXPECT_EQ(text::find_pre_tokenizer(""), nullptr);
}

TEST(PreTokenizeTest, Families) {
    const std::string text = "I'LL pay $1234.50\n\n  HTTPServer";
    EXPECT_EQ(cut("gpt-2", text), (Pieces{"I", "'", "LL", " pay", " $", "1234", ".", "50", "\n\n ", " HTTPServer"}));
    EXPECT_EQ(cut("llama-bpe", text), (Pieces{"I", "'LL", " pay", " $", "123", "4", ".", "50", "\n\n", " ", " HTTPServer"}));
    EXPECT_EQ(cut("qwen2", text), (Pieces{"I", "'LL", " pay", " $", "1", "2", "3", "4", ".", "5", "0", "\n\n", " ", " HTTPServer"}));
    EXPECT_EQ(cut("gpt-4o", text), (Pieces{"I'LL", " pay", " $", "123", "4", ".", "50", "\n\n", " ", " HTTPServer"}));
    EXPECT_EQ(cut("tekken", "camelCase HTTPs/\n"), (Pieces{"camel", "Case", " HTTPs", "/\n"}));
    EXPECT_EQ(cut("deepseek-v3", "a_b中文1234 x"), (Pieces{"a", "_b", "中文", "123", "4", " x"}));
    EXPECT_EQ(cut("falcon", "ab, 12345"), (Pieces{"ab", ",", " ", "123", "45"}));
    EXPECT_EQ(cut("bloom", "one two. three"), (Pieces{"one", " two", ".", " three"}));
}

TEST(PreTokenizeTest, PiecesMakeUpTheText) {
    const std::string text = "a B\t\n c\u0301 \u3000½x'ſ ΣΑΣ नमस्ते 한글 …!?\r\n  \u0378\x01z ";
    for (const std::string& name : names()) {
        std::string joined;
        for (const std::string& piece : cut(name, text)) joined += piece;
        EXPECT_EQ(joined, text) << name;
        EXPECT_TRUE(cut(name, "").empty()) << name;
    }
}

TEST(PreTokenizeTest, AMegabyteOfAnythingTakesLinearTime) {
    if (!support::measurable) GTEST_SKIP() << "a sanitizer's or unoptimized build says nothing about speed";
    for (const char* name : {"default", "gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35", "seed-coder", "minicpm5", "gpt-4o", "tekken", "deepseek-llm",
                             "deepseek-coder", "deepseek-v3", "falcon", "bloom", "viking"}) {
        const text::PreTokenizer& pre = *text::find_pre_tokenizer(name);
        for (const char* unit : {"A", "a", " ", "\n", "\r\n", ".", "7", "中", "\u0301", "\x01", "\u0378", "한 ", "aB", "\u0e31A", "' ", " \u3000", "É\u0301", "(", "the cat\n", "中A", "a\x01"}) {
            const auto seconds = [&](size_t bytes) {
                std::string text;
                while (text.size() + std::string_view(unit).size() <= bytes) text += unit;
                double best = 1e9;
                for (int i = 0; i < 2; ++i) {
                    const double start = support::cpu_seconds();
                    text::PreTokens tokens(pre, text);
                    size_t total = 0;
                    for (std::string_view piece; tokens.next(piece);) total += piece.size();
                    EXPECT_EQ(total, text.size());
                    best = std::min(best, support::cpu_seconds() - start);
                }
                return best;
            };
            const double whole = seconds(1 << 20), eighth = seconds(1 << 17);
            EXPECT_LT(whole, 0.5) << name << " " << unit;
            EXPECT_LT(whole, 2.3 * 2.3 * 2.3 * eighth + 0.1) << name << " " << unit << ": grows faster than the text";
        }
    }
}

TEST(NormalFormTest, ExamplesOfTheStandard) {
    const std::pair<const char*, const char*> cases[] = {
        {"\u212b", "\u00c5"},                        // a singleton
        {"A\u030a", "\u00c5"},                       // composition
        {"\u1e0b\u0323", "\u1e0d\u0307"},            // order: the dot below comes first
        {"d\u0307\u0323", "\u1e0d\u0307"},           //
        {"\u0958", "\u0915\u093c"},                  // excluded from composition
        {"\u1112\u1161\u11ab", "\ud55c"},            // Hangul
        {"\ud558\u11ab", "\ud55c"},                  //
        {"\u1100\uac00\u11a8", "\u1100\uac01"},      // the second syllable alone takes the final
        {"\u0344", "\u0308\u0301"},                  // decomposes to two marks
        {"a\u05ae\u0305\u0300\u0315b", "a\u05ae\u0305\u0300\u0315b"},  // U+0305 blocks U+0300
        {"\u1e9b\u0323", "\u1e9b\u0323"},
        {"plain", "plain"},
    };
    for (const auto& [from, to] : cases) {
        EXPECT_EQ(text::nfc(from), to) << from;
        EXPECT_EQ(text::nfc(to), to) << to;
        if (std::string_view(from) != to) { EXPECT_FALSE(text::is_surely_nfc(from)) << from; }
    }
    EXPECT_TRUE(text::is_surely_nfc("plain ASCII, é, 中文, 한국어"));
}

TEST(NormalFormTest, AMegabyteOfMarksTakesLessThanASecond) {
    if (!support::measurable) GTEST_SKIP() << "a sanitizer's or unoptimized build says nothing about speed";
    for (const char* unit : {"\u0301", "\u0323\u0301", "\u0301\u0323", "\u1161", "a\u0301"}) {
        std::string text = "a";
        while (text.size() < 1 << 20) text += unit;
        const double start = support::cpu_seconds();
        EXPECT_FALSE(text::nfc(text).empty());
        EXPECT_LT(support::cpu_seconds() - start, 1.0) << unit;
    }
}

}  // namespace
