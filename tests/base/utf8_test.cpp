#include "base/utf8.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/message.h"

namespace base {
namespace {

using utf8::Decoded;

std::string encoded(char32_t code_point) {
    std::string out;
    utf8::append(out, code_point);
    return out;
}

TEST(Utf8, EveryScalarValueRoundTrips) {
    for (char32_t c = 0; c <= 0x10ffff; ++c) {
        if (c >= 0xd800 && c <= 0xdfff) continue;
        const std::string text = encoded(c);
        // RFC 3629: the length follows from the value.
        ASSERT_EQ(text.size(), c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u);
        const Decoded back = utf8::decode(text, 0);
        ASSERT_TRUE(back.valid);
        ASSERT_EQ(back.code_point, c);
        ASSERT_EQ(back.length, text.size());
    }
    EXPECT_EQ(encoded(0x20ac), "\xe2\x82\xac");
    EXPECT_EQ(encoded(0x10348), "\xf0\x90\x8d\x88");
    EXPECT_EQ(encoded(0xd800), "\xef\xbf\xbd") << "a surrogate is no scalar value";
    EXPECT_EQ(encoded(0x110000), "\xef\xbf\xbd");
}

// Well-formedness by decoding arithmetic, not by the table of ranges: length from the lead byte, value from the payload
// bits, then the value must need that length and be a scalar value.
bool well_formed(std::string_view s) {
    size_t at = 0;
    while (at < s.size()) {
        const auto lead = static_cast<uint8_t>(s[at]);
        const uint32_t n = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
        if (n == 0 || at + n > s.size()) return false;
        uint32_t value = n == 1 ? lead : lead & (0xffu >> (n + 1));
        for (uint32_t i = 1; i < n; ++i) {
            const auto next = static_cast<uint8_t>(s[at + i]);
            if (next >> 6 != 2) return false;
            value = value << 6 | (next & 0x3fu);
        }
        const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return false;
        at += n;
    }
    return true;
}

TEST(Utf8, ValidityOfAllShortStrings) {
    // All strings of two bytes, and all of three and four over the bytes where ranges begin and end.
    for (int a = 0; a < 256; ++a)
        for (int b = 0; b < 256; ++b) {
            const std::string s{static_cast<char>(a), static_cast<char>(b)};
            ASSERT_EQ(utf8::is_valid(s), well_formed(s)) << a << " " << b;
        }
    const int edges[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                         0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xfe, 0xff};
    for (const int a : edges)
        for (const int b : edges)
            for (const int c : edges) {
                std::string s{static_cast<char>(a), static_cast<char>(b), static_cast<char>(c)};
                ASSERT_EQ(utf8::is_valid(s), well_formed(s));
                for (const int d : edges) {
                    const std::string t = s + static_cast<char>(d);
                    ASSERT_EQ(utf8::is_valid(t), well_formed(t));
                }
            }
}

TEST(Utf8, ReplacesMaximalSubparts) {
    const std::string r = "\xef\xbf\xbd";
    // The Unicode Standard, version 15, tables 3-8 to 3-11.
    EXPECT_EQ(utf8::replace_invalid("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
    EXPECT_EQ(utf8::replace_invalid("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), r + r + r + r + r + r + r + r + "A");
    EXPECT_EQ(utf8::replace_invalid("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), r + r + r + r + r + "A" + r + r + "B");
    EXPECT_EQ(utf8::replace_invalid("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), r + r + r + r + "A");
    EXPECT_EQ(utf8::replace_invalid("ok \xc3\xa9"), "ok \xc3\xa9");
    EXPECT_EQ(utf8::replace_invalid(""), "");
}

TEST(Utf8, KnowsACutCharacter) {
    const std::string text = "a\xf0\x9f\x98\x80";
    EXPECT_EQ(utf8::incomplete_tail(text), 0u);
    EXPECT_EQ(utf8::incomplete_tail(text.substr(0, 4)), 3u);
    EXPECT_EQ(utf8::incomplete_tail(text.substr(0, 3)), 2u);
    EXPECT_EQ(utf8::incomplete_tail(text.substr(0, 2)), 1u);
    EXPECT_EQ(utf8::incomplete_tail("a"), 0u);
    EXPECT_EQ(utf8::incomplete_tail(""), 0u);
    EXPECT_EQ(utf8::incomplete_tail("\x80\x80\x80\x80"), 0u) << "continuations without a lead are never completed";
    EXPECT_EQ(utf8::incomplete_tail("\xe0\x80"), 0u) << "E0 80 begins nothing";
    EXPECT_EQ(utf8::incomplete_tail("\xff"), 0u);
    // By definition: the longest proper beginning of a character at the end.
    for (const std::string_view whole : {"\xc3\xa9", "\xe2\x82\xac", "\xf4\x8f\xbf\xbf"})
        for (size_t n = 1; n < whole.size(); ++n) EXPECT_EQ(utf8::incomplete_tail(whole.substr(0, n)), n);
    EXPECT_EQ(utf8::valid_prefix("ab\xe2\x82"), 2u);
}

TEST(Message, PrintableEscapesWhatATerminalObeys) {
    EXPECT_EQ(printable("plain \xc3\xa9 text"), "plain \xc3\xa9 text");
    EXPECT_EQ(printable("a\nb\tc\rd\\"), "a\\nb\\tc\\rd\\\\");
    EXPECT_EQ(printable(std::string_view("\x1b[31m\0\x7f", 7)), "\\x1b[31m\\x00\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\u{009b}") << "C1 control sequence introducer";
    EXPECT_EQ(printable("\xe2\x80\xae" "abc"), "\\u{202e}abc") << "right-to-left override";
    EXPECT_EQ(printable("\xff\xe2\x82"), "\\xff\\xe2\\x82");
    EXPECT_EQ(printable("abcdef", 3), "abc...");
    EXPECT_EQ(printable("ab\xe2\x82\xac", 3), "ab...") << "never half a character";
}

TEST(Message, CatJoins) { EXPECT_EQ(cat("n is ", 5, ", ", -1L, 'x', std::string("y"), uint8_t{200}), "n is 5, -1xy200"); }

}  // namespace
}  // namespace base
