#include "json/writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "json/parse.h"

namespace {

std::string text_of(auto v) {
    std::string out;
    json::Writer(out).value(v);
    return out;
}

TEST(Writer, CommasAndNesting) {
    std::string out;
    json::Writer w(out);
    w.begin_object().member("a", 1).key("b").begin_array().value("x").value(nullptr).value(true).begin_object().end_object().end_array();
    w.member("c", 2.5).key("d").begin_array().end_array().key("e").raw("{\"r\":0}").end_object();
    EXPECT_TRUE(w.complete());
    EXPECT_EQ(out, R"({"a":1,"b":["x",null,true,{}],"c":2.5,"d":[],"e":{"r":0}})");
}

TEST(Writer, Escapes) {
    EXPECT_EQ(text_of(std::string_view("\"\\/\b\f\n\r\t\x01\x1f\x7f", 11)), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    EXPECT_EQ(text_of(std::string_view("\0", 1)), "\"\\u0000\"");
    EXPECT_EQ(text_of("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

// Each maximal bad subpart is one U+FFFD: Unicode Standard, table 3-8 ("61 F1 80 80 E1 80 C2 62 80 63 80 BF 64").
TEST(Writer, BadUtf8IsReplaced) {
    const std::string r = "\xef\xbf\xbd";
    EXPECT_EQ(text_of("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64"), "\"a" + r + r + r + "b" + r + "c" + r + r + "d\"");
    EXPECT_EQ(text_of("\xed\xa0\x80"), "\"" + r + r + r + "\"");
    EXPECT_EQ(text_of("\xf4\x90\x80\x80"), "\"" + r + r + r + r + "\"");
    EXPECT_EQ(text_of("\xc0\x80\xff"), "\"" + r + r + r + "\"");
    EXPECT_EQ(text_of("a\xe2\x82"), "\"a" + r + "\"");
}

TEST(Writer, Numbers) {
    EXPECT_EQ(text_of(0.1), "0.1");
    EXPECT_EQ(text_of(1.0), "1.0");
    EXPECT_EQ(text_of(-0.0), "-0.0");
    EXPECT_EQ(text_of(0.1f), "0.1");
    EXPECT_EQ(text_of(1e300), "1e+300");
    EXPECT_EQ(text_of(std::numeric_limits<double>::quiet_NaN()), "null");
    EXPECT_EQ(text_of(-std::numeric_limits<float>::infinity()), "null");
    EXPECT_EQ(text_of(UINT64_MAX), "18446744073709551615");
    EXPECT_EQ(text_of(INT64_MIN), "-9223372036854775808");
}

TEST(Writer, DoublesReadBackBitForBit) {
    std::mt19937_64 rng(7);
    for (int i = 0; i < 20'000; ++i) {
        const double number = std::bit_cast<double>(rng());
        if (!std::isfinite(number)) continue;
        const auto value = json::parse(text_of(number));
        ASSERT_TRUE(value.ok());
        ASSERT_NE(value.value().as_double(), nullptr) << text_of(number);
        EXPECT_EQ(std::bit_cast<uint64_t>(*value.value().as_double()), std::bit_cast<uint64_t>(number)) << text_of(number);
    }
}

// Any tree survives writing and reading.
TEST(Writer, TreesReadBackEqual) {
    std::mt19937_64 rng(11);
    const auto make = [&](auto&& self, int depth) -> json::Value {
        json::Value v;
        switch (rng() % (depth > 5 ? 5 : 7)) {
            case 0: break;
            case 1: v.data = rng() % 2 == 0; break;
            case 2: v.data = static_cast<int64_t>(rng()) >> (rng() % 64); break;
            case 3: v.data = std::ldexp(static_cast<double>(rng() % 1'000'003), static_cast<int>(rng() % 200) - 100); break;
            case 4: {
                std::string text;
                for (size_t n = rng() % 12; n > 0; --n)
                    text += std::string_view(
                                "\"\\\n\x01"
                                "a/\xc3\xa9",
                                9)
                                .substr(rng() % 7, 1);
                while (!text.empty() && static_cast<unsigned char>(text.back()) >= 0x80) text.pop_back();
                std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
                v.data = std::move(text);
                break;
            }
            case 5: {
                json::Array array;
                for (size_t n = rng() % 5; n > 0; --n) array.push_back(self(self, depth + 1));
                v.data = std::move(array);
                break;
            }
            default: {
                json::Object object;
                for (size_t n = rng() % 5; n > 0; --n)
                    object.emplace_back(std::string("k").append(std::to_string(n)), self(self, depth + 1));
                v.data = std::move(object);
            }
        }
        return v;
    };
    for (int i = 0; i < 2'000; ++i) {
        const json::Value tree = make(make, 0);
        const auto back = json::parse(json::to_text(tree));
        ASSERT_TRUE(back.ok()) << json::to_text(tree);
        EXPECT_EQ(back.value(), tree) << json::to_text(tree);
    }
}

}  // namespace
