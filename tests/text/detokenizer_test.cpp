#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace {

// The text of tokens pushed one after the other; checks that each piece is whole characters.
std::string decode(const std::vector<std::string>& tokens) {
    text::Detokenizer detokenizer;
    std::string all;
    const auto sink = [&](std::string_view piece) {
        EXPECT_FALSE(piece.empty());
        EXPECT_TRUE(base::utf8::is_valid(piece));
        all += piece;
    };
    for (const std::string& token : tokens) detokenizer.push(token, sink);
    detokenizer.finish(sink);
    return all;
}

const std::string fffd = "\xEF\xBF\xBD";

TEST(DetokenizerTest, HoldsAnUnfinishedCharacter) {
    text::Detokenizer detokenizer;
    std::vector<std::string> pieces;
    const auto sink = [&](std::string_view piece) { pieces.emplace_back(piece); };
    detokenizer.push("caf\xC3", sink);
    EXPECT_EQ(pieces, (std::vector<std::string>{"caf"}));
    detokenizer.push("\xA9!", sink);
    EXPECT_EQ(pieces, (std::vector<std::string>{"caf", "é", "!"}));
    detokenizer.finish(sink);
    EXPECT_EQ(pieces.size(), 3u);
}

TEST(DetokenizerTest, BadBytes) {
    // Right values: Python's b''.join(tokens).decode('utf-8', 'replace').
    EXPECT_EQ(decode({"\xF0", "\x9F", "\x91", "\x8D"}), "👍");
    EXPECT_EQ(decode({"\xF0\x9F\x91"}), fffd);
    EXPECT_EQ(decode({"\xF0\x9F", "x"}), fffd + "x");
    EXPECT_EQ(decode({"\xF0\x9F", "\xF0\x9F\x91\x8D"}), fffd + "👍");
    EXPECT_EQ(decode({"\xED", "\xA0", "\x80"}), fffd + fffd + fffd);
    EXPECT_EQ(decode({"\xC0", "\x80"}), fffd + fffd);
    EXPECT_EQ(decode({"\xF4\x90", "\x80\x80"}), fffd + fffd + fffd + fffd);
    EXPECT_EQ(decode({"\xE2\x82", "\xE2\x82\xAC"}), fffd + "€");
    EXPECT_EQ(decode({"\x80", "a", "\xFF"}), fffd + "a" + fffd);
    EXPECT_EQ(decode({}), "");
    EXPECT_EQ(decode({"", "", ""}), "");
}

TEST(DetokenizerTest, AnyCutOfAnyBytesGivesTheTextOfTheWhole) {
    std::mt19937_64 rng(11);
    static const char* const bits[] = {
        "a",    "é",    "€",        "👍",        "\xC3", "\xE2", "\xE2\x82", "\xF0", "\xF0\x9F", "\xF0\x9F\x91",
        "\x80", "\xBF", "\xED\xA0", "\xF4\x90", "\xC0", "\xFF"};
    for (int i = 0; i < 20'000; ++i) {
        std::string bytes;
        const size_t n = rng() % 12;
        for (size_t k = 0; k < n; ++k) bytes += rng() % 4 ? bits[rng() % std::size(bits)] : std::string(1, static_cast<char>(rng()));
        std::vector<std::string> tokens;
        for (size_t at = 0; at < bytes.size();) {
            const size_t length = rng() % 5;
            tokens.push_back(bytes.substr(at, length));
            at += tokens.back().size();
        }
        ASSERT_EQ(decode(tokens), base::utf8::replace_invalid(bytes));
    }
}

}  // namespace
