// Routes through their handler, with a scripted engine: shapes of answers, statuses, states.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/message.h"
#include "tests/server/api_harness.h"

namespace {

using api::Harness;
using api::Seen;
using json::Value;

const std::string hello = R"({"messages":[{"role":"user","content":"hi"}])";

const Value& at(const Value& value, std::initializer_list<std::string_view> path) {
    static const Value none;
    const Value* here = &value;
    for (const std::string_view name : path) {
        if (!name.empty() && name[0] >= '0' && name[0] <= '9') {
            const json::Array* array = here->as_array();
            const size_t index = std::stoul(std::string(name));
            if (!array || index >= array->size()) return none;
            here = &(*array)[index];
        } else {
            here = here->find(name);
            if (!here) return none;
        }
    }
    return *here;
}

std::string text_at(const Value& value, std::initializer_list<std::string_view> path) {
    const std::string* text = at(value, path).as_string();
    return text ? *text : "(no string)";
}

int64_t int_at(const Value& value, std::initializer_list<std::string_view> path) {
    const int64_t* i = at(value, path).as_int();
    return i ? *i : -999;
}

// All content deltas of one choice, joined.
std::string streamed_text(const Seen& seen, int64_t choice, bool chat = true) {
    std::string out;
    for (const Value& event : seen.events()) {
        if (int_at(event, {"choices", "0", "index"}) != choice) continue;
        const Value& text = chat ? at(event, {"choices", "0", "delta", "content"}) : at(event, {"choices", "0", "text"});
        if (text.as_string()) out += *text.as_string();
    }
    return out;
}

TEST(Routes, WholeChatAnswer) {
    Harness h;
    h.load();
    const Seen& seen = h.post("/v1/chat/completions", hello + R"(,"seed":5,"max_tokens":10})");
    EXPECT_EQ(seen.head.status, 200u);
    EXPECT_EQ(seen.head.content_type, "application/json");
    const Value v = seen.json();
    EXPECT_EQ(text_at(v, {"object"}), "chat.completion");
    EXPECT_EQ(text_at(v, {"id"}).substr(0, 9), "chatcmpl-");
    EXPECT_EQ(text_at(v, {"model"}), "tiny");
    EXPECT_EQ(text_at(v, {"system_fingerprint"}), "fp_test");
    EXPECT_EQ(text_at(v, {"choices", "0", "message", "role"}), "assistant");
    EXPECT_EQ(text_at(v, {"choices", "0", "message", "content"}), "Hello world");
    EXPECT_EQ(text_at(v, {"choices", "0", "finish_reason"}), "stop");
    EXPECT_TRUE(at(v, {"choices", "0", "logprobs"}).is_null());
    const int64_t prompt = static_cast<int64_t>(std::string("B<user>hi\n<assistant>").size());  // B: the fake tokenizer puts BOS first
    EXPECT_EQ(int_at(v, {"usage", "prompt_tokens"}), prompt);
    EXPECT_EQ(int_at(v, {"usage", "completion_tokens"}), 3);
    EXPECT_EQ(int_at(v, {"usage", "total_tokens"}), prompt + 3);
    EXPECT_EQ(int_at(v, {"usage", "prompt_tokens_details", "cached_tokens"}), 2);
    EXPECT_EQ(int_at(v, {"timings", "cache_n"}), 2);
    EXPECT_EQ(int_at(v, {"timings", "prompt_n"}), prompt - 2);
    EXPECT_EQ(int_at(v, {"timings", "predicted_n"}), 3);
    EXPECT_EQ(*at(v, {"timings", "prompt_ms"}).as_double(), 10.0);
    EXPECT_EQ(*at(v, {"timings", "predicted_ms"}).as_double(), 100.0);
    EXPECT_EQ(*at(v, {"timings", "predicted_per_second"}).as_double(), 20.0);  // two gaps in 100 ms

    ASSERT_EQ(h.engine.submitted.size(), 1u);
    const engine::Request& r = h.engine.submitted[0];
    EXPECT_EQ(r.sampling.seed, 5u);
    EXPECT_EQ(r.max_tokens, 10u);
    EXPECT_EQ(r.cache_salt, 42u);
    EXPECT_EQ(r.arrival_ns, h.clock.now_ns());
}

TEST(Routes, StreamHasTheReferenceShape) {
    Harness h;
    h.load();
    const Seen& seen = h.post("/v1/chat/completions", hello + R"(,"stream":true,"stream_options":{"include_usage":true}})");
    EXPECT_TRUE(seen.streamed && seen.ended && seen.done());
    EXPECT_EQ(seen.head.content_type, "text/event-stream");
    EXPECT_EQ(seen.header("Cache-Control"), "no-cache, no-transform");
    EXPECT_EQ(seen.header("X-Accel-Buffering"), "no");
    const std::vector<Value> events = seen.events();
    ASSERT_EQ(events.size(), 5u);
    for (const Value& event : events) {
        EXPECT_EQ(text_at(event, {"object"}), "chat.completion.chunk");
        EXPECT_EQ(text_at(event, {"id"}), text_at(events[0], {"id"}));
        EXPECT_EQ(int_at(event, {"created"}), int_at(events[0], {"created"}));
        EXPECT_EQ(text_at(event, {"system_fingerprint"}), "fp_test");
    }
    EXPECT_EQ(json::to_text(at(events[0], {"choices", "0"})),
              R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})");
    EXPECT_EQ(json::to_text(at(events[1], {"choices", "0"})),
              R"({"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null})");
    EXPECT_EQ(json::to_text(at(events[2], {"choices", "0"})),
              R"({"index":0,"delta":{"content":" world"},"logprobs":null,"finish_reason":null})");
    EXPECT_EQ(json::to_text(at(events[3], {"choices", "0"})), R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})");
    EXPECT_TRUE(at(events[3], {"usage"}).is_null() && events[3].find("usage"));
    EXPECT_TRUE(at(events[4], {"choices"}).as_array()->empty());
    EXPECT_EQ(int_at(events[4], {"usage", "completion_tokens"}), 3);
    EXPECT_EQ(int_at(events[4], {"usage", "completion_tokens_details", "reasoning_tokens"}), 0);
    EXPECT_EQ(int_at(events[4], {"timings", "predicted_n"}), 3);
}

TEST(Routes, TimingsRideOnTheLastChunkWhenNoUsageIsAsked) {
    Harness h;
    h.load();
    const Seen& seen = h.post("/v1/chat/completions", hello + R"(,"stream":true})");
    const std::vector<Value> events = seen.events();
    ASSERT_EQ(events.size(), 4u);
    EXPECT_EQ(events[0].find("usage"), nullptr);
    EXPECT_EQ(events[0].find("timings"), nullptr);
    EXPECT_EQ(int_at(events[3], {"timings", "predicted_n"}), 3);
}

TEST(Routes, StreamedTextEqualsWholeText) {
    Harness h;
    h.load();
    h.engine.script = [](const engine::Request&, uint32_t choice) {
        support::FakeEngine::Script script;
        for (uint32_t i = 0; i < 40 + choice; ++i)
            script.pieces.push_back(i % 3 == 0 ? "" : i % 3 == 1 ? "\xc3\xa9\"\n" : base::cat("x", choice * 100 + i));
        script.finish = choice == 1 ? engine::FinishReason::length : engine::FinishReason::stop;
        script.eos = choice != 1;
        return script;
    };
    const Seen& whole = h.post("/v1/chat/completions", hello + R"(,"n":3})");
    const Seen& stream = h.post("/v1/chat/completions", hello + R"(,"n":3,"stream":true,"stream_options":{"include_usage":true}})");
    const Value v = whole.json();
    ASSERT_EQ(at(v, {"choices"}).as_array()->size(), 3u);
    for (int64_t c = 0; c < 3; ++c) {
        EXPECT_EQ(text_at(v, {"choices", std::to_string(c), "message", "content"}), streamed_text(stream, c));
        std::string reason;
        int roles = 0;
        for (const Value& event : stream.events()) {
            if (int_at(event, {"choices", "0", "index"}) != c) continue;
            roles += at(event, {"choices", "0", "delta", "role"}).as_string() != nullptr;
            if (at(event, {"choices", "0", "finish_reason"}).as_string()) reason = text_at(event, {"choices", "0", "finish_reason"});
        }
        EXPECT_EQ(roles, 1);
        EXPECT_EQ(reason, text_at(v, {"choices", std::to_string(c), "finish_reason"}));
    }
    EXPECT_EQ(text_at(v, {"choices", "1", "finish_reason"}), "length");
    EXPECT_EQ(json::to_text(at(v, {"usage"})), json::to_text(at(stream.events().back(), {"usage"})));
    EXPECT_EQ(int_at(v, {"usage", "completion_tokens"}), 41 + 41 + 43);
}

TEST(Routes, ChatLogprobsAndTokens) {
    Harness h;
    h.load();
    const std::string body = hello + R"(,"logprobs":true,"top_logprobs":2,"return_tokens":true)";
    const Seen& whole = h.post("/v1/chat/completions", body + "}");
    const Value v = whole.json();
    // Tokens 'a', 'b' of the fake vocabulary; the end-of-text token is not part of the answer.
    EXPECT_EQ(
        json::to_text(at(v, {"choices", "0", "logprobs", "content"})),
        R"([{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":[97]},{"token":"b","logprob":-1.5,"bytes":[98]}]},)"
        R"({"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[{"token":"b","logprob":-0.5,"bytes":[98]},{"token":"c","logprob":-1.5,"bytes":[99]}]}])");
    EXPECT_EQ(json::to_text(at(v, {"choices", "0", "tokens"})), "[97,98]");
    const Seen& stream = h.post("/v1/chat/completions", body + R"(,"stream":true})");
    json::Array entries, tokens;
    for (const Value& event : stream.events()) {
        if (const json::Array* list = at(event, {"choices", "0", "logprobs", "content"}).as_array())
            entries.insert(entries.end(), list->begin(), list->end());
        if (const json::Array* list = at(event, {"choices", "0", "tokens"}).as_array())
            tokens.insert(tokens.end(), list->begin(), list->end());
    }
    EXPECT_EQ(entries, *at(v, {"choices", "0", "logprobs", "content"}).as_array());
    EXPECT_EQ(tokens, *at(v, {"choices", "0", "tokens"}).as_array());
}

TEST(Routes, Completions) {
    Harness h;
    h.load();
    const Seen& seen = h.post("/v1/completions", R"({"prompt":["one","two!"],"n":2,"echo":true})");
    const Value v = seen.json();
    EXPECT_EQ(text_at(v, {"object"}), "text_completion");
    EXPECT_EQ(text_at(v, {"id"}).substr(0, 5), "cmpl-");
    ASSERT_EQ(at(v, {"choices"}).as_array()->size(), 4u);
    EXPECT_EQ(text_at(v, {"choices", "1", "text"}), "oneHello world");
    EXPECT_EQ(text_at(v, {"choices", "2", "text"}), "two!Hello world");
    EXPECT_EQ(int_at(v, {"choices", "3", "index"}), 3);
    EXPECT_EQ(int_at(v, {"usage", "prompt_tokens"}), 4 + 5);  // each prompt once, with BOS
    EXPECT_EQ(int_at(v, {"usage", "completion_tokens"}), 4 * 3);

    const Seen& stream = h.post("/v1/completions", R"({"prompt":["one","two!"],"n":2,"echo":true,"stream":true})");
    for (int64_t c = 0; c < 4; ++c) EXPECT_EQ(streamed_text(stream, c, false), text_at(v, {"choices", std::to_string(c), "text"}));
    EXPECT_TRUE(stream.done());

    const Seen& logprobs = h.post("/v1/completions", R"({"prompt":"x","logprobs":1})");
    EXPECT_EQ(json::to_text(at(logprobs.json(), {"choices", "0", "logprobs"})),
              R"({"tokens":["a","b"],"token_logprobs":[-0.5,-0.5],"top_logprobs":[{"a":-0.5},{"b":-0.5}],"text_offset":[0,1]})");
}

TEST(Routes, PrefillGoesOnWithTheAnswer) {
    Harness h;
    h.load();
    h.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"I th"}]})");
    ASSERT_EQ(h.engine.submitted.size(), 1u);
    std::string prompt;
    for (const engine::TokenId token : h.engine.submitted[0].tokens) prompt += token < 256 ? static_cast<char>(token) : 'B';
    EXPECT_EQ(prompt, "B<user>q\n<assistant>I th");
}

TEST(Routes, TemplateArguments) {
    Harness h;
    h.load();
    const Seen& seen =
        h.post("/v1/chat/completions", hello + R"(,"chat_template_kwargs":{"style":"terse","enable_thinking":false},"extra":1})");
    EXPECT_EQ(seen.head.status, 200u);
    EXPECT_EQ(seen.header("x-hearth-ignored"), "extra, chat_template_kwargs.enable_thinking");
    const Seen& own = h.post("/v1/chat/completions", hello + R"(,"chat_template_kwargs":{"messages":[]}})");
    EXPECT_EQ(own.head.status, 400u);
    EXPECT_EQ(text_at(own.json(), {"error", "param"}), "chat_template_kwargs.messages");
    const Seen& raised = h.post("/v1/chat/completions", R"({"messages":[{"role":"tool","content":"x"}]})");
    EXPECT_EQ(raised.head.status, 400u);
    EXPECT_EQ(text_at(raised.json(), {"error", "message"}), "no tools here");
}

TEST(Routes, IgnoredNamesCannotBreakTheHeader) {
    Harness h;
    h.load();
    std::string fields;
    for (int i = 0; i < 30; ++i) fields += ",\"f" + std::to_string(i) + "\":1";
    const Seen& seen = h.post("/v1/chat/completions", hello + R"(,"a\r\nb: c":1)" + fields + "}");
    EXPECT_EQ(seen.head.status, 200u);
    EXPECT_EQ(seen.header("x-hearth-ignored").substr(0, 14), "a??b??c, f0, f");
    EXPECT_TRUE(seen.header("x-hearth-ignored").ends_with("and 15 more"));
}

TEST(Routes, ContextLength) {
    Harness h;
    h.load();
    // 1024 tokens of context, a token a byte; BOS (B) and the template come on top.
    const auto body = [](size_t content, const std::string& fields) {
        return R"({"messages":[{"role":"user","content":")" + std::string(content, 'x') + "\"}]" + fields + "}";
    };
    const size_t framing = std::string("B<user>\n<assistant>").size();
    const Seen& over = h.post("/v1/chat/completions", body(1024 - framing, ""));
    EXPECT_EQ(over.head.status, 400u);
    EXPECT_EQ(text_at(over.json(), {"error", "code"}), "context_length_exceeded");
    EXPECT_EQ(text_at(over.json(), {"error", "message"}),
              "This model's maximum context length is 1024 tokens. However, your messages resulted in 1024 tokens. Please reduce the "
              "length of the messages.");
    const Seen& both = h.post("/v1/chat/completions", body(1000 - framing, R"(,"max_tokens":25)"));
    EXPECT_EQ(text_at(both.json(), {"error", "message"}),
              "This model's maximum context length is 1024 tokens. However, you requested 1025 tokens (1000 in the messages, 25 in the "
              "completion). Please reduce the length of "
              "the messages or completion.");
    EXPECT_TRUE(h.engine.submitted.empty());
    EXPECT_EQ(h.post("/v1/chat/completions", body(1000 - framing, R"(,"max_tokens":24)")).head.status, 200u);
    // Without max_tokens: what the context leaves, up to the server's default of 100.
    EXPECT_EQ(h.post("/v1/chat/completions", body(1023 - framing, "")).head.status, 200u);
    EXPECT_EQ(h.engine.submitted.back().max_tokens, 1u);
    EXPECT_EQ(h.post("/v1/chat/completions", body(10, "")).head.status, 200u);
    EXPECT_EQ(h.engine.submitted.back().max_tokens, 100u);
    EXPECT_EQ(text_at(h.post("/v1/completions", R"({"prompt":[300]})").json(), {"error", "param"}), "prompt[0]");
    EXPECT_EQ(text_at(h.post("/v1/completions", R"({"prompt":"x","logit_bias":{"272":1}})").json(), {"error", "param"}), "logit_bias");
    EXPECT_EQ(h.post("/v1/completions", R"({"prompt":""})").head.status, 200u);  // BOS alone is a prompt
    EXPECT_EQ(text_at(h.post("/v1/completions", R"({"prompt":"x","min_tokens":5,"max_tokens":4})").json(), {"error", "param"}),
              "min_tokens");
}

TEST(Routes, FullQueueIs429WithRetryAfter) {
    Harness h;
    h.load();
    h.engine.gate = [](const engine::Request&) -> base::Result<void> {
        return base::Error{base::ErrorCode::queue_full, "8 requests wait", ""};
    };
    const Seen& seen = h.post("/v1/chat/completions", hello + R"(,"stream":true})");
    EXPECT_EQ(seen.head.status, 429u);
    EXPECT_EQ(seen.header("Retry-After"), "7");
    EXPECT_EQ(text_at(seen.json(), {"error", "code"}), "queue_full");
    EXPECT_EQ(h.streams->live_count(), 0u);
}

TEST(Routes, ABurstIsRefusedBeforeItCostsAnything) {
    Harness h;
    h.load();
    h.engine.numbers.waiting = h.model.queue_requests_max;
    const Seen& seen = h.post("/v1/chat/completions", hello + "}");
    EXPECT_EQ(seen.head.status, 429u);
    EXPECT_EQ(seen.header("Retry-After"), "7");
    EXPECT_EQ(text_at(seen.json(), {"error", "message"}), "the queue is full: 8 requests wait");
    EXPECT_EQ(h.post("/tokenize", R"({"content":"a"})").head.status, 200u);  // needs no place in the queue
    h.engine.numbers.waiting = 0;
    // As many prompts as the engine could ever take are being prepared: the next one is refused at once. All of them stand
    // in the loop's queue before the first job can be done, so all begin before one ends.
    std::vector<Harness::Call*> calls;
    for (uint32_t i = 0; i < h.model.queue_requests_max + limits::sequences_running; ++i)
        calls.push_back(&h.begin("POST", "/v1/completions", R"({"prompt":"x"})"));
    Harness::Call& late = h.begin("POST", "/tokenize", R"({"content":"a"})");
    ASSERT_TRUE(h.until([&] { return late.seen.returned; }));
    ASSERT_TRUE(
        h.until([&] { return std::all_of(calls.begin(), calls.end(), [](const Harness::Call* call) { return call->seen.returned; }); }));
    EXPECT_EQ(late.seen.head.status, 429u);
    for (const Harness::Call* call : calls) EXPECT_EQ(call->seen.head.status, 200u);
}

TEST(Routes, ARefusedSecondPromptCancelsTheFirst) {
    Harness h;
    h.load();
    h.engine.gate = [&](const engine::Request&) -> base::Result<void> {
        if (h.engine.submitted.empty()) return {};
        return base::Error{base::ErrorCode::queue_full, "full", ""};
    };
    EXPECT_EQ(h.post("/v1/completions", R"({"prompt":["a","b"]})").head.status, 429u);
    EXPECT_EQ(h.engine.cancelled, std::vector<engine::RequestId>{h.engine.submitted[0].id});
    EXPECT_EQ(h.engine.live(), 0u);
}

TEST(Routes, LoadingStates) {
    Harness h;
    h.routes->set_loading_status("Loading model, 43 %");
    for (const char* path : {"/health", "/v1/health", "/ready", "/v1/models"}) {
        const Seen& seen = h.call("GET", path);
        EXPECT_EQ(seen.head.status, 503u) << path;
        EXPECT_EQ(seen.header("Retry-After"), "1");
        EXPECT_EQ(text_at(seen.json(), {"error", "message"}), "Loading model, 43 %");
    }
    EXPECT_EQ(h.post("/v1/chat/completions", hello + "}").head.status, 503u);
    EXPECT_EQ(h.call("GET", "/metrics").head.status, 200u);
    h.load();
    EXPECT_EQ(h.call("GET", "/health").body, R"({"status":"ok"})");
    EXPECT_EQ(h.call("GET", "/ready").head.status, 200u);
    h.routes->set_draining();
    EXPECT_EQ(h.call("GET", "/health").head.status, 200u);
    EXPECT_EQ(h.call("GET", "/ready").head.status, 503u);
    h.engine.numbers.waiting = h.model.queue_requests_max;  // a full queue too: "try again" would be no use
    const Seen& late = h.post("/v1/chat/completions", hello + "}");
    h.engine.numbers.waiting = 0;
    EXPECT_EQ(late.head.status, 503u);
    EXPECT_NE(late.header("Retry-After"), "");
    EXPECT_EQ(h.post("/tokenize", R"({"content":"a"})").head.status, 200u);
}

TEST(Routes, AStuckEngineShowsInHealth) {
    Harness h;
    h.load();
    h.engine.numbers.busy_since_ns = h.clock.now_ns();
    h.clock.advance_ms(9'900);
    EXPECT_EQ(h.call("GET", "/health").head.status, 200u);
    h.clock.advance_ms(200);
    EXPECT_EQ(h.call("GET", "/health").head.status, 503u);
    EXPECT_EQ(h.call("GET", "/ready").head.status, 503u);
    EXPECT_EQ(h.post("/v1/chat/completions", hello + "}").head.status, 503u);
    h.engine.numbers.busy_since_ns = 0;
    EXPECT_EQ(h.call("GET", "/health").head.status, 200u);
}

TEST(Routes, Models) {
    Harness h;
    h.load();
    h.model.id = "org/name:q4";
    const Value list = h.call("GET", "/v1/models").json();
    EXPECT_EQ(text_at(list, {"object"}), "list");
    EXPECT_EQ(text_at(list, {"data", "0", "id"}), "org/name:q4");
    EXPECT_EQ(int_at(list, {"data", "0", "max_model_len"}), 1024);
    EXPECT_EQ(int_at(list, {"data", "0", "default_max_tokens"}), 100);
    EXPECT_EQ(h.call("GET", "/v1/models/org/name:q4").head.status, 200u);
    EXPECT_EQ(h.call("HEAD", "/models/org/name:q4/").head.status, 200u);
    const Seen& other = h.call("GET", "/v1/models/gpt-4");
    EXPECT_EQ(other.head.status, 404u);
    EXPECT_EQ(text_at(other.json(), {"error", "code"}), "model_not_found");
}

TEST(Routes, MethodsAndPaths) {
    Harness h;
    h.load();
    const Seen& get = h.call("GET", "/v1/chat/completions");
    EXPECT_EQ(get.head.status, 405u);
    EXPECT_EQ(get.header("Allow"), "POST, OPTIONS");
    EXPECT_EQ(h.call("DELETE", "/health").header("Allow"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(h.call("OPTIONS", "/v1/models").head.status, 204u);
    EXPECT_EQ(h.call("HEAD", "/health").head.status, 200u);
    EXPECT_EQ(h.post("/v1/chat/completions/", hello + "}").head.status, 200u);
    EXPECT_EQ(h.post("/chat/completions", hello + "}").head.status, 200u);
    const auto message = [&](std::string path) {
        const Seen& seen = h.call("GET", std::move(path));
        EXPECT_EQ(seen.head.status, 404u);
        return text_at(seen.json(), {"error", "message"});
    };
    EXPECT_EQ(message("/v1/chat/completion"), "no route /v1/chat/completion; did you mean /v1/chat/completions?");
    EXPECT_EQ(message("/v1/model"), "no route /v1/model; did you mean /v1/models?");
    EXPECT_EQ(message("/nothing/like/it"), "no route /nothing/like/it; /v1/models and /v1/chat/completions are two that exist");
    EXPECT_NE(message("/\x1b[31m\xff").find("\\x1b"), std::string::npos);
    message(std::string(1, '/').append(8000, 'a'));
    message("/");  // no page was given
}

TEST(Routes, BodiesOfOtherOriginsMustBeJson) {
    Harness h;
    h.load();
    using Headers = std::vector<std::pair<std::string, std::string>>;
    const auto status = [&](Headers headers) {
        return h.call("POST", "/v1/chat/completions", hello + "}", std::move(headers)).head.status;
    };
    EXPECT_EQ(status({}), 200u);
    EXPECT_EQ(status({{"content-type", "application/json; charset=utf-8"}}), 200u);
    EXPECT_EQ(status({{"content-type", "application/x-www-form-urlencoded"}}), 200u);  // curl -d
    EXPECT_EQ(status({{"content-type", "text/plain"}}), 200u);
    EXPECT_EQ(status({{"content-type", "text/plain"}, {"origin", "https://evil.example"}}), 415u);
    EXPECT_EQ(status({{"origin", "null"}}), 415u);
    EXPECT_EQ(status({{"content-type", "Application/JSON"}, {"origin", "http://127.0.0.1:8080"}}), 200u);
    EXPECT_EQ(status({{"content-type", "application/json; charset=utf-16"}}), 415u);
    EXPECT_EQ(status({{"content-encoding", "gzip"}}), 415u);
}

TEST(Routes, TokenizeDetokenizeTemplate) {
    Harness h;
    h.load();
    EXPECT_EQ(h.post("/tokenize", R"({"content":"ab"})").body, R"({"tokens":[97,98],"count":2,"max_model_len":1024})");
    EXPECT_EQ(h.post("/tokenize", R"({"prompt":"ab","with_pieces":true})").body,
              R"({"tokens":[{"id":97,"piece":"a","bytes":[97]},{"id":98,"piece":"b","bytes":[98]}],"count":2,"max_model_len":1024})");
    EXPECT_EQ(int_at(h.post("/tokenize", hello + "}").json(), {"count"}), 21);
    EXPECT_EQ(h.post("/detokenize", R"({"tokens":[104,105,195,169,240]})").body, "{\"content\":\"hi\xc3\xa9\xef\xbf\xbd\"}");
    EXPECT_EQ(h.post("/apply-template", hello + "}").body, R"({"prompt":"<user>hi\n<assistant>"})");
    EXPECT_EQ(h.post("/tokenize", "{}").head.status, 400u);
    EXPECT_EQ(h.post("/tokenize", R"({"content":5})").head.status, 400u);
    EXPECT_EQ(h.post("/tokenize", "[").head.status, 400u);
    EXPECT_EQ(text_at(h.post("/detokenize", R"({"tokens":[1,272]})").json(), {"error", "param"}), "tokens[1]");
    EXPECT_EQ(h.post("/detokenize", R"({"tokens":"x"})").head.status, 400u);
    EXPECT_EQ(h.post("/apply-template", R"({"messages":[]})").head.status, 400u);
    // The space that SentencePiece puts before a text is none of it, at the front and behind a control token.
    h.tokenizer.prefixes_space = true;
    EXPECT_EQ(text_at(h.post("/detokenize", R"({"tokens":[32,104,32,105]})").json(), {"content"}), "h i");
    EXPECT_FALSE(text_at(h.post("/detokenize", R"({"tokens":[257,32,104]})").json(), {"content"}).ends_with(" h"));
    EXPECT_TRUE(text_at(h.post("/detokenize", R"({"tokens":[257,104,32,104]})").json(), {"content"}).ends_with("h h"));
}

TEST(Routes, OneLineInTheLogForEachRequest) {
    Harness h;
    std::vector<std::string> lines;
    h.options.access_log = [&](std::string_view line) { lines.emplace_back(line); };
    h.routes = std::make_unique<server::Routes>(h.options, *h.streams, *h.worker, h.clock);
    h.load();
    h.post("/v1/chat/completions", hello + R"(,"stream":true})");
    h.post("/v1/chat/completions", R"({"messages":"secret"})");
    h.call("GET", "/v1/models/secret/\n");
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0], "POST /chat/completions 200 0 ms, 21+3 tokens (2 cached), queue 1 ms, prefill 10 ms 127.0.0.1:1 req_1");
    EXPECT_EQ(lines[1], "POST /chat/completions 400 0 ms 127.0.0.1:1 req_1");
    EXPECT_EQ(lines[2], "GET /models/{id} 404 0 ms 127.0.0.1:1 req_1");
}

TEST(Routes, AModelWithoutTemplateStillCompletes) {
    Harness h;
    h.model.chat_template = nullptr;
    h.load();
    const Seen& chat = h.post("/v1/chat/completions", hello + "}");
    EXPECT_EQ(chat.head.status, 400u);
    EXPECT_NE(text_at(chat.json(), {"error", "message"}).find("/v1/completions"), std::string::npos);
    EXPECT_EQ(h.post("/v1/completions", R"({"prompt":"x"})").head.status, 200u);
}

// A batch that an idle server could not take is a fault of the request, not of the moment.
TEST(Routes, ABatchThatNeverFitsIsRefusedForGood) {
    Harness h;
    h.load();
    h.model.queue_requests_max = 8;
    h.model.sequences_max = 4;
    std::string prompts = "\"a\"";
    for (int i = 0; i < 12; ++i) prompts += ",\"a\"";
    const Seen& seen = h.post("/v1/completions", "{\"max_tokens\":1,\"prompt\":[" + prompts + "]}");
    EXPECT_EQ(seen.head.status, 400u);
    EXPECT_EQ(text_at(seen.json(), {"error", "param"}), "prompt");
    EXPECT_NE(text_at(seen.json(), {"error", "message"}).find("13 prompts; this server takes 12"), std::string::npos) << seen.body;
}

TEST(Routes, PageAssets) {
    Harness h;
    static constexpr server::Asset page[] = {{"/", "text/html; charset=utf-8", "\"e1\"", "", "<html>"},
                                             {"/", "text/html; charset=utf-8", "\"e2\"", "gzip", "GZ"}};
    h.options.assets = page;
    h.options.assets_csp = "default-src 'none'";
    h.routes = std::make_unique<server::Routes>(h.options, *h.streams, *h.worker, h.clock);
    const Seen& plain = h.call("GET", "/");
    EXPECT_EQ(plain.body, "<html>");
    EXPECT_EQ(plain.header("Content-Security-Policy"), "default-src 'none'");
    EXPECT_EQ(plain.header("Content-Encoding"), "");
    const Seen& gzip = h.call("GET", "/", "", {{"accept-encoding", "br, gzip"}});
    EXPECT_EQ(gzip.body, "GZ");
    EXPECT_EQ(gzip.header("Content-Encoding"), "gzip");
    EXPECT_EQ(gzip.header("Vary"), "Accept-Encoding");
    const Seen& unchanged = h.call("GET", "/", "", {{"accept-encoding", "gzip"}, {"if-none-match", "\"e2\""}});
    EXPECT_EQ(unchanged.head.status, 304u);
    EXPECT_EQ(unchanged.body, "");
    // RFC 9110 12.5.3: q=0 refuses a coding, "*" is any other; 13.1.2: a list, weak tags, "*".
    for (const char* refused : {"gzip;q=0", "gzip ; q=0.000, br", "*;q=0", "gzip;q=0, *", "deflate"})
        EXPECT_EQ(h.call("GET", "/", "", {{"accept-encoding", refused}}).body, "<html>") << refused;
    for (const char* taken : {"gzip;q=0.001", "GZIP", "br;q=1.0, gzip;q=0.5", "*", "br;q=0, *;q=0.1"})
        EXPECT_EQ(h.call("GET", "/", "", {{"accept-encoding", taken}}).body, "GZ") << taken;
    for (const char* same : {"*", "W/\"e1\"", "\"x\", \"e1\""})
        EXPECT_EQ(h.call("GET", "/", "", {{"if-none-match", same}}).head.status, 304u) << same;
    for (const char* other : {"\"e\"", "e1", "\"e2\"", "\"x\""})
        EXPECT_EQ(h.call("GET", "/", "", {{"if-none-match", other}}).head.status, 200u) << other;
    EXPECT_EQ(h.call("POST", "/").head.status, 405u);
}

}  // namespace
