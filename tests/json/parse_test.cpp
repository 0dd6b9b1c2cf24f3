// What is JSON and what is not: cases after RFC 8259 and the ideas of the public JSONTestSuite, in our own words.
#include "json/parse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"
#include "json/fault.h"
#include "json/writer.h"

namespace {

using json::Value;

Value parsed(std::string_view text) {
    base::Result<Value> result = json::parse(text);
    EXPECT_TRUE(result.ok()) << text << ": " << (result.ok() ? "" : result.error().message);
    return result.ok() ? std::move(result).value() : Value{};
}

std::string refusal(std::string_view text) {
    const base::Result<Value> result = json::parse(text);
    EXPECT_FALSE(result.ok()) << text;
    if (result.ok()) return "";
    EXPECT_EQ(result.error().code, base::ErrorCode::invalid_argument);
    return result.error().message;
}

std::string nested(size_t depth, char open, char close, std::string inside) {
    return std::string(depth, open) + std::move(inside) + std::string(depth, close);
}

TEST(Parse, AcceptsEveryFormOfValue) {
    EXPECT_TRUE(parsed(" null ").is_null());
    EXPECT_EQ(*parsed("true").as_bool(), true);
    EXPECT_EQ(*parsed("\t\r\n-7").as_int(), -7);
    EXPECT_EQ(*parsed("9223372036854775807").as_int(), INT64_MAX);
    EXPECT_EQ(*parsed("-9223372036854775808").as_int(), INT64_MIN);
    EXPECT_EQ(*parsed("9223372036854775808").as_uint(), uint64_t{1} << 63);
    EXPECT_EQ(*parsed("18446744073709551615").as_uint(), UINT64_MAX);
    EXPECT_EQ(*parsed("0.1").as_double(), 0.1);
    EXPECT_EQ(*parsed("1E+2").as_double(), 100.0);
    EXPECT_EQ(*parsed("1e-400").as_double(), 0.0);
    EXPECT_EQ(*parsed("1.7976931348623157e308").as_double(), 1.7976931348623157e308);
    EXPECT_EQ(*parsed("5e-324").as_double(), 5e-324);
    EXPECT_EQ(*parsed(R"("a\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")").as_string(),
              "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    EXPECT_EQ(*parsed(R"("\u0000")").as_string(), std::string(1, '\0'));
    EXPECT_EQ(*parsed("\"\x7f\"").as_string(), "\x7f");
    EXPECT_TRUE(parsed("[]").as_array()->empty());
    EXPECT_TRUE(parsed("{}").as_object()->empty());
    EXPECT_EQ(parsed("[1,[2,{\"a\":[]}]]").as_array()->size(), 2u);
    EXPECT_EQ(*parsed(R"({"":0})").find("")->as_int(), 0);
}

TEST(Parse, KeepsOrderAndTheLastOfEqualKeys) {
    const Value value = parsed(R"({"b":1,"a":2,"b":3,"c":4,"a":5})");
    const json::Object& members = *value.as_object();
    ASSERT_EQ(members.size(), 3u);
    EXPECT_EQ(members[0].first, "b");
    EXPECT_EQ(*members[0].second.as_int(), 3);
    EXPECT_EQ(members[1].first, "a");
    EXPECT_EQ(*members[1].second.as_int(), 5);
    EXPECT_EQ(members[2].first, "c");
}

TEST(Parse, SkipsAByteOrderMark) {
    EXPECT_EQ(*parsed("\xef\xbb\xbf{\"a\":1}").find("a")->as_int(), 1);
    EXPECT_NE(refusal("\xef\xbb\xbf{x").find("byte 4"), std::string::npos);  // counted from the start of the body
}

TEST(Parse, RefusesWhatIsNotJson) {
    const std::vector<std::string> bad = {
        "",
        " ",
        "\xef\xbb\xbf",
        "{",
        "[",
        "\"",
        "}",
        "]",
        ",",
        ":",
        "nul",
        "nulll",
        "True",
        "TRUE",
        "tru",
        "fals",
        "undefined",
        "NaN",
        "-NaN",
        "Infinity",
        "-Infinity",
        "+1",
        "01",
        "-01",
        "-",
        "--1",
        ".5",
        "1.",
        "1.e1",
        "1e",
        "1e+",
        "1E-",
        "0x10",
        "1_000",
        "1 2",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1;2]",
        "[1]]",
        "[[1]",
        "(1)",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "{1:1}",
        "{\"a\":1 \"b\":2}",
        "{\"a\" 1}",
        "{\"a\":1}}",
        "{\"a\":1}x",
        "{} {}",
        "{}//",
        "/* */{}",
        "#{}",
        "{\"a\":1}#",
        "\"a",
        "\"\\\"",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u12G4\"",
        "\"\\\n\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x1f\"",
        "'a'",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\u0041\"",
        "\"\\ud800\\ud800\"",
        "\"\\uDBFF\"",
        "\"\\\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xe0\x80\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xf5\x80\x80\x80\"",
        "\"\xe2\x82\"",
        "\"\xc3",
        "\xff{}",
        "{}\xff",
        "[\xff]",
        "1e400",
        "-1e400",
        "1e99999999999",
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "\xef\xbb\xbf\xef\xbb\xbf{}",
        "\x0b{}",
        "\xc2\xa0{}",
        "\xe2\x80\xa8{}",
        "[1\x0c]",
        std::string("{}\0", 3),
        std::string("\0{}", 3),
        std::string("[1,\0]", 5),
        std::string("\"\0\"", 3),
        "[\"a\",\n4,\n1,",
        "[-]",
        "[1,,2]",
        "{\"a\":\"b\",,\"c\":1}",
        "[1e1.5]",
        "[0e]",
        "[2.e3]",
        "[1a]",
        "[1.0a]",
        "[\"a\"b]",
        "[true1]",
        "[nullnull]",
        "{\"a\":true,:1}",
    };
    for (const std::string& text : bad) {
        const std::string message = refusal(text);
        EXPECT_NE(message.find("byte"), std::string::npos) << "no place named for: " << text << " -> " << message;
        EXPECT_TRUE(json::find_fault(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text, limits::json_depth)) << text;
    }
    // UTF-16 with and without mark; gzip's magic.
    refusal(std::string("\xff\xfe{\0}\0", 6));
    refusal(std::string("{\0}\0", 4));
    refusal("\x1f\x8b\x08");
}

TEST(Parse, SaysWhatIsWrongAndWhere) {
    EXPECT_EQ(refusal("{\"a\":1e400}"), "not valid JSON at byte 5: the number 1e400 is too large");
    EXPECT_EQ(refusal("[18446744073709551616]"), "not valid JSON at byte 1: the number 18446744073709551616 does not fit 64 bits");
    EXPECT_EQ(refusal("{\"a\":NaN}"), "not valid JSON at byte 5: expected a value, found 'N'");
    EXPECT_EQ(refusal("{\"a\":\"\\ud800\"}"), "not valid JSON at byte 6: a surrogate without its other half");
    EXPECT_EQ(refusal("{\"a\":1} x"), "not valid JSON at byte 8: expected the end of the text, found 'x'");
    EXPECT_EQ(refusal(""), "not valid JSON at byte 0: the text is empty");
    EXPECT_EQ(refusal("[01]"), "not valid JSON at byte 1: a number must not begin with a zero");
    EXPECT_EQ(refusal("{\"a\""), "not valid JSON at byte 4: expected ':', found the end of the text");
}

TEST(Parse, DepthHasALimit) {
    parsed(nested(limits::json_depth, '[', ']', "1"));
    EXPECT_NE(refusal(nested(limits::json_depth + 1, '[', ']', "1")).find("nested deeper than 64"), std::string::npos);
    refusal(std::string(100'000, '['));
    refusal(std::string(4 << 20, '['));
    std::string objects;
    for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
    refusal(objects);
}

TEST(Parse, CountOfValuesHasALimit) {
    std::string zeros = "[0";
    for (size_t i = 1; i < limits::json_values_count - 1; ++i) zeros += ",0";  // the array itself counts as one
    EXPECT_EQ(parsed(zeros + "]").as_array()->size(), limits::json_values_count - 1);
    EXPECT_NE(refusal(zeros + ",0]").find("more than 262144 values"), std::string::npos);
}

TEST(Parse, ManyEqualKeysAreNoWork) {
    std::string text = "{";
    for (int i = 0; i < 100'000; ++i) text += std::string(i ? "," : "") + "\"k" + std::to_string(i % 50'000) + "\":" + std::to_string(i);
    const Value value = parsed(text + "}");
    ASSERT_EQ(value.as_object()->size(), 50'000u);
    EXPECT_EQ(*value.as_object()->front().second.as_int(), 50'000);
}

TEST(Value, NumbersAndKinds) {
    double number = 0;
    EXPECT_TRUE(parsed("3").number(number));
    EXPECT_EQ(number, 3.0);
    EXPECT_FALSE(parsed("\"10\"").number(number));
    EXPECT_EQ(parsed("\"10\"").kind_name(), "a string");
    EXPECT_EQ(parsed("18446744073709551615").kind_name(), "an integer");
    EXPECT_EQ(parsed("{}").kind_name(), "an object");
    EXPECT_EQ(parsed("[1]").find("a"), nullptr);
}

}  // namespace
