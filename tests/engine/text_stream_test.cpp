// Stop strings and UTF-8 across tokens, against a search over the whole text.
#include "engine/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"

using namespace engine;

namespace {

const TextStream::Sink collect(std::string& out) {
    return {[](void* to, std::string_view text) { static_cast<std::string*>(to)->append(text); }, &out};
}

struct Result {
    std::string text;
    int32_t stop = -1;
    size_t tokens = 0;  // pushed until it ended
};

Result run(const std::vector<std::string>& tokens, const std::vector<std::string>& stops, size_t min_tokens = 0) {
    const StopStrings strings(stops);
    TextStream stream;
    Result r;
    for (; r.tokens < tokens.size();) {
        const bool look = r.tokens >= min_tokens;
        r.stop = stream.push(tokens[r.tokens++], look, strings, collect(r.text));
        if (r.stop >= 0) return r;
    }
    r.stop = stream.finish(r.tokens > min_tokens, strings, collect(r.text));
    return r;
}

}  // namespace

TEST(TextStream, TextIsHeldBackOnlyWhileItMayBecomeAStop) {
    const StopStrings stops({"STOP"});
    TextStream stream;
    std::string out;
    EXPECT_EQ(stream.push("a ST", true, stops, collect(out)), -1);
    EXPECT_EQ(out, "a ");
    EXPECT_EQ(stream.held_bytes(), 2u);
    EXPECT_EQ(stream.push("A", true, stops, collect(out)), -1);
    EXPECT_EQ(out, "a STA");
    EXPECT_EQ(stream.push("ST", true, stops, collect(out)), -1);
    EXPECT_EQ(stream.push("OP and more", true, stops, collect(out)), 0);
    EXPECT_EQ(out, "a STA");
}

TEST(TextStream, WhatWasHeldIsShownWhenTheAnswerEnds) { EXPECT_EQ(run({"end ST", "O"}, {"STOP"}).text, "end STO"); }

TEST(TextStream, TheStopThatCompletesFirstWins) {
    EXPECT_EQ(run({"xabcdef"}, {"cdef", "bc"}).text, "xa");  // bc is complete before cdef
    EXPECT_EQ(run({"xabcdef"}, {"cdef", "bc"}).stop, 1);
    EXPECT_EQ(run({"xabc"}, {"c", "abc", "bc"}).text, "x");  // all end with c: the one that began first
    EXPECT_EQ(run({"xabc"}, {"c", "abc", "bc"}).stop, 1);
}

TEST(TextStream, ASelfOverlappingStopIsFound) {
    EXPECT_EQ(run({"aa", "ab"}, {"aab"}).text, "a");
    EXPECT_EQ(run({"abab", "abac"}, {"ababac"}).text, "ab");
}

TEST(TextStream, AStopMayBeAPartOfACharacterSequence) {
    EXPECT_EQ(run({"caf\xC3", "\xA9 au lait"}, {"\xC3\xA9 au"}).text, "caf");
    // A shared first byte alone is not a match: U+00E8 and U+00E9.
    EXPECT_EQ(run({"caf\xC3", "\xA8"}, {"\xC3\xA9"}).text, "caf\xC3\xA8");
}

TEST(TextStream, MinTokensKeepsItsTextOutOfAnyMatch) {
    EXPECT_EQ(run({"STOP", "STOP", "x"}, {"STOP"}, 1).text, "STOP");
    EXPECT_EQ(run({"ST", "OP", "x", "STOP"}, {"STOP"}, 1).text, "STOPx");
    EXPECT_EQ(run({"STOP"}, {"STOP"}, 5).text, "STOP");
}

TEST(TextStream, BadBytesBecomeReplacementsAndMayStop) {
    EXPECT_EQ(run({"a\xFF", "b"}, {}).text, "a\xEF\xBF\xBD" "b");
    EXPECT_EQ(run({"a\xF0\x9F"}, {}).text, "a\xEF\xBF\xBD");
    EXPECT_EQ(run({"a\xFF", "b"}, {"\xEF\xBF\xBD"}).text, "a");
    EXPECT_EQ(run({"a\xF0\x9F"}, {"\xEF\xBF\xBD"}).stop, 0);
}

// The cut into tokens changes nothing: the text, the stop and the place depend on the bytes alone.
TEST(TextStream, AnyCutGivesTheTextOfAPlainSearch) {
    std::mt19937_64 random(7);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const std::vector<std::string> pieces{"a", "b", "ab", "\xC3\xA9", "\xF0\x9F\x98\x80", "\xC3", "\xA9", "\x98", "c"};
    size_t n_stopped = 0, n_long = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string bytes;
        for (size_t n = 1 + pick(30); n > 0; --n) bytes += pieces[pick(pieces.size())];
        if (pick(20) == 0) bytes += std::string(1'500, 'a') + "b";
        std::vector<std::string> stops;
        for (size_t n = pick(5); n > 0; --n) {
            std::string s;
            for (size_t k = 1 + pick(4); k > 0; --k) s += pieces[pick(5)];
            stops.push_back(s);
        }
        if (pick(50) == 0) stops.push_back(std::string(200, 'a') + "b");

        // The text by the detokenizer's definition, then the earliest end of any stop, then the longest of those.
        std::string want;
        for (size_t at = 0; at < bytes.size();) {
            const auto c = base::utf8::decode(bytes, at);
            want += c.valid ? bytes.substr(at, c.length) : "\xEF\xBF\xBD";
            at += c.length;
        }
        int32_t want_stop = -1;
        size_t want_end = std::string::npos;
        for (size_t k = 0; k < stops.size(); ++k) {
            const size_t at = want.find(stops[k]);
            if (at == std::string::npos) continue;
            const size_t end = at + stops[k].size();
            if (end < want_end || (end == want_end && stops[k].size() > stops[static_cast<size_t>(want_stop)].size())) {
                want_end = end;
                want_stop = static_cast<int32_t>(k);
            }
        }
        if (want_stop >= 0) want.resize(want_end - stops[static_cast<size_t>(want_stop)].size());

        std::vector<std::string> tokens;
        for (size_t at = 0; at < bytes.size();) {
            const size_t n = std::min(bytes.size() - at, 1 + pick(pick(4) == 0 ? 600 : 3));
            tokens.push_back(bytes.substr(at, n));
            at += n;
        }
        const Result got = run(tokens, stops);
        ASSERT_EQ(got.text, want) << "case " << i;
        ASSERT_EQ(got.stop, want_stop) << "case " << i;
        n_stopped += want_stop >= 0;
        n_long += want.size() > 1'000;
    }
    EXPECT_GT(n_stopped, 5'000u);
    EXPECT_GT(n_long, 100u);
}
