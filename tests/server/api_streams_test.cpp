// Streams under pressure: clients that leave, clients that don't read, engines that fail, servers that end.
#include <gtest/gtest.h>

#include "base/message.h"
#include "tests/server/api_harness.h"

namespace {

using api::Harness;

const std::string hello = R"({"messages":[{"role":"user","content":"hi"}])";

support::FakeEngine::Script long_script(size_t pieces, std::string text = "word ") {
    support::FakeEngine::Script script;
    script.pieces.assign(pieces, text);
    return script;
}

TEST(Streams, AClientThatLeavesIsCancelledAtOnce) {
    for (const char* stream : {"true", "false"}) {
        Harness h;
        h.load();
        h.engine.script = [](const engine::Request&, uint32_t) { return long_script(1000); };
        Harness::Call& call = h.begin("POST", "/v1/chat/completions", hello + ",\"stream\":" + stream + "}");
        ASSERT_TRUE(h.until([&] { return h.engine.numbers.steps > 20 && !h.engine.submitted.empty(); }));
        call.writer->leave();
        ASSERT_TRUE(h.until([&] { return call.seen.returned; }));
        EXPECT_EQ(h.engine.cancelled, std::vector<engine::RequestId>{h.engine.submitted[0].id});
        EXPECT_EQ(h.engine.live(), 0u);
        EXPECT_EQ(h.streams->live_count(), 0u);
        EXPECT_FALSE(call.seen.responded);
        EXPECT_EQ(h.routes->generations_count(), 0u);
    }
}

TEST(Streams, AClientThatLeavesBeforeItsTokensAreMadeNeverReachesTheEngine) {
    Harness h;
    h.load();
    Harness::Call& call = h.begin("POST", "/v1/chat/completions", hello + "}");
    call.writer->leave();
    ASSERT_TRUE(h.until([&] { return call.seen.returned; }));
    EXPECT_TRUE(h.engine.submitted.empty());
}

TEST(Streams, ASlowReaderPausesItsSequenceAndNobodyElses) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request& request, uint32_t) { return long_script(request.max_tokens == 99 ? 3000 : 50); };
    Harness::Call& slow = h.begin("POST", "/v1/chat/completions", hello + R"(,"stream":true,"max_tokens":99})");
    slow.writer->stalled = true;
    ASSERT_TRUE(h.until([&] { return !h.engine.paused.empty(); }));
    EXPECT_EQ(h.streams->paused_count(), 1u);
    const uint64_t steps = h.engine.numbers.steps;
    EXPECT_LT(steps, 1000u);  // paused long before its 3,000 tokens were made
    const api::Seen& other = h.post("/v1/chat/completions", hello + R"(,"stream":true})");
    EXPECT_TRUE(other.done());
    slow.writer->stalled = false;
    ASSERT_TRUE(h.until([&] { return slow.seen.returned; }));
    EXPECT_FALSE(h.engine.resumed.empty());
    EXPECT_EQ(h.streams->paused_count(), 0u);
    EXPECT_TRUE(slow.seen.done());
    std::string text;
    for (const json::Value& event : slow.seen.events())
        if (const json::Value* choices = event.find("choices"); choices && !choices->as_array()->empty())
            if (const json::Value* delta = (*choices->as_array())[0].find("delta"); delta && delta->find("content"))
                text += *delta->find("content")->as_string();
    EXPECT_EQ(text.size(), 3000u * 5);
}

TEST(Streams, EarlyErrorsHaveTheirStatusAndLateOnesAreEvents) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request& request, uint32_t) {
        support::FakeEngine::Script script = long_script(request.max_tokens == 1 ? 0 : 5);
        script.finish = engine::FinishReason::error;
        script.eos = false;
        if (script.pieces.empty()) script.eos = true;
        return script;
    };
    const api::Seen& early = h.post("/v1/chat/completions", hello + R"(,"stream":true,"max_tokens":1})");
    EXPECT_EQ(early.head.status, 500u);
    EXPECT_FALSE(early.streamed);
    EXPECT_EQ(early.header("x-should-retry"), "false");

    Harness::Call& late = h.begin("POST", "/v1/chat/completions", hello + R"(,"stream":true})");
    // Step by step, so that the first chunks are out before the end.
    for (int i = 0; i < 10 && !late.seen.returned; ++i) {
        h.turn(5);
        h.engine.step();
    }
    ASSERT_TRUE(h.until([&] { return late.seen.returned; }));
    EXPECT_EQ(late.seen.head.status, 200u);
    EXPECT_TRUE(late.seen.ended);
    EXPECT_FALSE(late.seen.done());  // no [DONE] behind an error
    const std::vector<json::Value> events = late.seen.events();
    ASSERT_NE(events.back().find("error"), nullptr);
    EXPECT_EQ(*events.back().find("error")->find("code")->as_string(), "internal_error");
    for (const json::Value& event : events)
        EXPECT_TRUE(event.find("error") || (*event.find("choices")->as_array())[0].find("finish_reason")->is_null());

    const api::Seen& whole = h.post("/v1/chat/completions", hello + "}");
    EXPECT_EQ(whole.head.status, 500u);
}

TEST(Streams, TheServersEndCutsWithAnErrorEvent) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request&, uint32_t) { return long_script(100'000); };
    Harness::Call& stream = h.begin("POST", "/v1/chat/completions", hello + R"(,"stream":true})");
    Harness::Call& whole = h.begin("POST", "/v1/chat/completions", hello + "}");
    ASSERT_TRUE(h.until([&] { return h.engine.numbers.steps > 50 && stream.seen.streamed; }));
    EXPECT_EQ(h.routes->generations_count(), 2u);
    h.streams->abort_all({base::ErrorCode::unavailable, "the server is shutting down", ""});
    ASSERT_TRUE(h.until([&] { return stream.seen.returned && whole.seen.returned; }));
    EXPECT_EQ(*stream.seen.events().back().find("error")->find("message")->as_string(), "the server is shutting down");
    EXPECT_EQ(whole.seen.head.status, 503u);
    EXPECT_NE(whole.seen.header("Retry-After"), "");
    EXPECT_EQ(h.engine.live(), 0u);
}

TEST(Streams, EventsWithoutAStreamAreDropped) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request&, uint32_t) { return long_script(100); };
    Harness::Call& call = h.begin("POST", "/v1/chat/completions", hello + R"(,"stream":true})");
    ASSERT_TRUE(h.until([&] { return call.seen.streamed; }));
    h.engine.step();  // events in the ring
    call.writer->leave();
    h.engine.step();
    h.turn(5);
    EXPECT_TRUE(call.seen.returned);
    EXPECT_EQ(h.streams->live_count(), 0u);
}

TEST(Streams, ManyAtOnceEachGetTheirOwn) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request& request, uint32_t) {
        return long_script(1 + request.max_tokens, base::cat("<", request.max_tokens, ">"));
    };
    std::vector<Harness::Call*> calls;
    for (int i = 1; i <= 32; ++i)
        calls.push_back(
            &h.begin("POST", "/v1/completions",
                     R"({"prompt":"x","stream":)" + std::string(i % 2 ? "true" : "false") + ",\"max_tokens\":" + std::to_string(i) + "}"));
    ASSERT_TRUE(h.until([&] {
        for (const Harness::Call* call : calls)
            if (!call->seen.returned) return false;
        return true;
    }));
    for (int i = 1; i <= 32; ++i) {
        std::string text, expected;
        for (int k = 0; k <= i; ++k) expected += base::cat("<", i, ">");
        const api::Seen& seen = calls[static_cast<size_t>(i - 1)]->seen;
        if (i % 2 == 0) {
            text = *(*seen.json().find("choices")->as_array())[0].find("text")->as_string();
        } else {
            for (const json::Value& event : seen.events())
                if (const json::Array* choices = event.find("choices")->as_array(); !choices->empty())
                    text += *(*choices)[0].find("text")->as_string();
        }
        EXPECT_EQ(text, expected);
    }
}

}  // namespace
