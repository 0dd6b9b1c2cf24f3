// One request and its neighbours: what ends an answer, what is refused, what events say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "engine/engine_thread.h"
#include "tests/engine/plain_answer.h"
#include "tests/engine/rig.h"

using namespace engine;
using engine_test::Answer;
using engine_test::plain_answer;
using engine_test::Rig;
using support::FakeTokenizer;

namespace {

support::FakeModelConfig pool(uint32_t blocks, uint32_t context = 4'096) {
    support::FakeModelConfig m;
    m.kv_blocks_count = blocks;
    m.context_length = context;
    m.bias.assign(m.n_vocab, 0.0f);
    m.bias[FakeTokenizer::eos] = m.bias[FakeTokenizer::eot] = -50.0f;  // ends only where a test wants it
    return m;
}

EngineConfig config(uint32_t sequences = 64, uint32_t queue = 64) {
    EngineConfig c;
    c.sequences_max = sequences;
    c.queue_requests_max = queue;
    return c;
}

base::ErrorCode code(const base::Result<void>& r) { return r.error().code; }

std::vector<TokenId> greedy(const Rig& rig, std::vector<TokenId> tokens, uint32_t n) {
    std::vector<TokenId> out;
    while (out.size() < n) {
        const std::vector<float> logits = rig.fake->logits_for(tokens);
        const auto best = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        out.push_back(best);
        tokens.push_back(best);
        if (rig.tokenizer.is_end_of_generation(best)) break;
    }
    return out;
}

}  // namespace

TEST(Engine, GreedyFollowsTheLargestLogit) {
    Rig rig(config(), pool(64));
    Request r = rig.request("What is the capital of France?", 100);
    const auto want = greedy(rig, r.tokens, 100);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    const Answer& a = rig.answer(r.id);
    EXPECT_EQ(a.tokens, want);
    EXPECT_EQ(a.finish, FinishReason::length);
    EXPECT_TRUE(a.last_choice);
    EXPECT_EQ(a.usage.prompt_tokens, r.tokens.size());
    EXPECT_EQ(a.usage.completion_tokens, 100u);
    EXPECT_TRUE(rig.is_empty());
}

TEST(Engine, NothingToDoIsFalseAndWakesNobody) {
    Rig rig(config(), pool(8));
    EXPECT_FALSE(rig.e->step());
    EXPECT_FALSE(rig.e->has_work());
    EXPECT_EQ(rig.wakes, 0u);
    ASSERT_TRUE(rig.e->submit(rig.request("hi", 3)));
    EXPECT_TRUE(rig.e->has_work());
    for (uint64_t i = 1; i <= 3; ++i) {
        EXPECT_TRUE(rig.e->step());
        EXPECT_EQ(rig.wakes, i);  // once a step
    }
    EXPECT_FALSE(rig.e->step());
}

TEST(Engine, AnEndOfGenerationTokenEndsTheAnswerAndShowsNoText) {
    support::FakeModelConfig m = pool(8);
    m.bias[FakeTokenizer::eot] = 50.0f;
    Rig rig(config(), m);
    Request r = rig.request("hi", 10);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    const Answer& a = rig.answer(r.id);
    EXPECT_EQ(a.tokens, (std::vector<TokenId>{FakeTokenizer::eot}));
    EXPECT_EQ(a.text, "");
    EXPECT_EQ(a.finish, FinishReason::stop);
    EXPECT_EQ(a.stop_index, -1);
}

TEST(Engine, IgnoreEosAndMinTokensKeepEndTokensFromBeingDrawn) {
    support::FakeModelConfig m = pool(16);
    m.bias[FakeTokenizer::eos] = 50.0f;
    Rig rig(config(), m);
    Request endless = rig.request("hi", 40), few = rig.request("hi", 40);
    endless.ignore_eos = true;
    few.min_tokens = 7;
    ASSERT_TRUE(rig.e->submit(endless));
    ASSERT_TRUE(rig.e->submit(few));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(endless.id).finish, FinishReason::length);
    EXPECT_EQ(rig.answer(endless.id).tokens.size(), 40u);
    EXPECT_EQ(std::ranges::count(rig.answer(endless.id).tokens, FakeTokenizer::eos), 0);
    EXPECT_EQ(rig.answer(few.id).finish, FinishReason::stop);
    EXPECT_EQ(rig.answer(few.id).tokens.size(), 8u);  // seven, then the end
}

TEST(Engine, ATokenLongerThanAnEventTakesSeveral) {
    support::FakeModelConfig m = pool(8);
    m.bias[FakeTokenizer::vocab - 1] = 50.0f;  // 300 times ~
    Rig rig(config(), m);
    Request r = rig.request("hi", 2);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    const Answer& a = rig.answer(r.id);
    EXPECT_EQ(a.text, std::string(600, '~'));
    EXPECT_EQ(a.tokens.size(), 2u);
    ASSERT_EQ(a.events.size(), 4u);
    EXPECT_EQ(a.events[1].token, -1);
    EXPECT_EQ(a.events[3].finish_reason, FinishReason::length);
    EXPECT_EQ(a.events[2].finish_reason, FinishReason::none);
}

TEST(Engine, AStopStringAcrossTokensEndsTheAnswerBeforeIt) {
    support::FakeModelConfig m = pool(8);
    Rig probe(config(), m);
    Request r = probe.request("tell me", 60);
    ASSERT_TRUE(probe.e->submit(r));
    ASSERT_TRUE(probe.finish_all());
    const Answer whole = probe.answer(r.id);
    // A stop made of the text of the tokens 20 and 21, wherever that comes first.
    std::string before;
    for (size_t i = 0; i < 20; ++i) before += whole.events[i].text_view();
    const std::string stop = std::string(whole.events[20].text_view()) + std::string(whole.events[21].text_view());
    ASSERT_GE(stop.size(), 2u);
    Rig rig(config(), m);
    Request s = rig.request("tell me", 60);
    s.stop = {"never this", stop};
    ASSERT_TRUE(rig.e->submit(s));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(s.id).text, whole.text.substr(0, whole.text.find(stop)));
    EXPECT_EQ(rig.answer(s.id).finish, FinishReason::stop);
    EXPECT_EQ(rig.answer(s.id).stop_index, 1);
    EXPECT_LE(rig.answer(s.id).tokens.size(), 22u);
}

TEST(Engine, LogprobsComeWithEachToken) {
    Rig rig(config(), pool(8));
    Request r = rig.request("hi", 12);
    r.logprobs = true;
    r.top_logprobs = 5;
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    std::vector<TokenId> history = r.tokens;
    for (const Event& event : rig.answer(r.id).events) {
        if (event.token < 0) continue;
        const std::vector<float> logits = rig.fake->logits_for(history);
        double z = 0;
        for (const float x : logits) z += std::exp(static_cast<double>(x));
        EXPECT_NEAR(static_cast<double>(event.logprob), static_cast<double>(logits[static_cast<size_t>(event.token)]) - std::log(z), 1e-5);
        ASSERT_EQ(event.n_top, 5);
        EXPECT_EQ(event.top[0].token, event.token);  // greedy
        for (size_t i = 1; i < 5; ++i) EXPECT_LE(event.top[i].logprob, event.top[i - 1].logprob);
        history.push_back(event.token);
    }
}

TEST(Engine, ChoicesShareOnePromptAndDrawForThemselves) {
    Rig rig(config(), pool(64));
    Request r = rig.long_request(300, 20);
    r.sampling.temperature = 1.0f;
    r.sampling.seed = 99;
    r.n_choices = 4;
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    std::set<std::vector<TokenId>> different;
    for (uint32_t c = 0; c < 4; ++c) {
        EXPECT_EQ(rig.answer(r.id, c).tokens, plain_answer(*rig.fake, rig.tokenizer, r, c).tokens);
        EXPECT_EQ(rig.answer(r.id, c).usage.completion_tokens, 20u);
        different.insert(rig.answer(r.id, c).tokens);
    }
    EXPECT_EQ(different.size(), 4u);
    // 300 rows once; of the further choices only the 44 tokens after the last full block; 19 decode rows each.
    EXPECT_EQ(rig.fake->seen().rows, 300u + 3 * 44 + 4 * 19);
    EXPECT_TRUE(rig.is_empty());
}

TEST(Engine, ExactlyOneEventOfARequestIsTheLast) {
    Rig rig(config(), pool(64));
    Request r = rig.request("hi", 30);
    r.n_choices = 3;
    r.sampling.temperature = 1.0f;
    r.stop = {"a", "e", "q"};
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    int last = 0;
    for (uint32_t c = 0; c < 3; ++c) {
        EXPECT_NE(rig.answer(r.id, c).finish, FinishReason::none);
        last += rig.answer(r.id, c).last_choice;
    }
    EXPECT_EQ(last, 1);
}

// --- bad rows --------------------------------------------------------------------------------------------------------

TEST(Engine, ABrokenRowEndsItsSequenceAndNoOther) {
    for (int kind = 0; kind < 3; ++kind) {
        support::FakeModelConfig m = pool(32);
        m.nan_token = 1;
        m.infinity_token = 2;
        m.zeros_token = 3;
        for (const TokenId t : {1, 2, 3}) m.bias[static_cast<size_t>(t)] = -50.0f;
        Rig rig(config(), m);
        Request good = rig.request("good", 30), bad = rig.request("bad", 30), forced = rig.request("forced", 30);
        bad.tokens.push_back(1 + kind);                                // broken at its first row
        forced.sampling.logit_bias = {{1 + kind, 100.0f}};             // draws the poison itself, broken at the second row
        ASSERT_TRUE(rig.e->submit(bad));
        ASSERT_TRUE(rig.e->submit(good));
        ASSERT_TRUE(rig.e->submit(forced));
        ASSERT_TRUE(rig.finish_all());
        EXPECT_EQ(rig.answer(bad.id).finish, FinishReason::error);
        EXPECT_TRUE(rig.answer(bad.id).tokens.empty());
        EXPECT_EQ(rig.answer(forced.id).finish, FinishReason::error);
        EXPECT_EQ(rig.answer(forced.id).tokens, (std::vector<TokenId>{1 + kind}));
        EXPECT_EQ(rig.answer(good.id).tokens, greedy(rig, good.tokens, 30));
        EXPECT_EQ(rig.e->stats().finished_error, 2u);
        EXPECT_TRUE(rig.is_empty());
    }
}

TEST(Engine, WhenEverythingIsBannedTheAnswerIsAnError) {
    support::FakeModelConfig m = pool(8);
    m.n_vocab = 272;
    Rig rig(config(), m);
    Request r = rig.request("hi", 5);
    for (TokenId t = 0; t < 272; ++t) r.sampling.logit_bias.emplace_back(t, -100.0f);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(r.id).finish, FinishReason::error);
}

// --- refusals --------------------------------------------------------------------------------------------------------

// L#17284, L#9016 and their like: the context that is reported is the one enforced, to the token, at any parallelism.
TEST(Engine, TheContextIsEnforcedToTheToken) {
    for (const uint32_t sequences : {1u, 4u, 64u}) {
        Rig rig(config(sequences), pool(64, 1'000));
        ASSERT_TRUE(rig.e->submit(rig.long_request(900, 100)));
        const auto refused = rig.e->submit(rig.long_request(900, 101));
        ASSERT_FALSE(refused);
        EXPECT_EQ(code(refused), base::ErrorCode::context_length_exceeded);
        EXPECT_EQ(refused.error().message,
                  "This model's maximum context length is 1000 tokens. However, you requested 1001 tokens (900 in the messages, 101 in the "
                  "completion). Please reduce the length of the messages or completion.");
        EXPECT_EQ(code(rig.e->submit(rig.long_request(1'001, 1))), base::ErrorCode::context_length_exceeded);
        ASSERT_TRUE(rig.finish_all());
        EXPECT_EQ(rig.answer(1).usage.completion_tokens, 100u);
    }
}

// vllm#39734: inside the context, over the pool: waited for ever and held up all behind it.
TEST(Engine, WhatCanNeverFitThePoolIsRefusedAndASmallOneBesideItFinishes) {
    Rig rig(config(), pool(5, 4'096));
    Request big = rig.long_request(300, 21 + 1), fits = rig.long_request(300, 21), small = rig.request("small", 10);
    const auto refused = rig.e->submit(big);
    ASSERT_FALSE(refused);
    EXPECT_EQ(code(refused), base::ErrorCode::context_length_exceeded);
    EXPECT_NE(refused.error().message.find("320 tokens"), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find("322 tokens (300 in the messages, 22 in the completion)"), std::string::npos);
    ASSERT_TRUE(rig.e->submit(fits));  // 320 positions are computed: the last token never is
    ASSERT_TRUE(rig.e->submit(small));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(fits.id).tokens.size(), 21u);
    EXPECT_EQ(rig.answer(small.id).tokens.size(), 10u);
}

TEST(Engine, ChoicesThatCanNeverFitTogetherAreRefused) {
    Rig rig(config(), pool(5, 4'096));
    Request r = rig.long_request(130, 62);  // 191 positions: 3 blocks, 2 of them shared
    r.n_choices = 3;
    ASSERT_TRUE(rig.e->submit(r));  // 3 + 1 + 1
    r.id = 100;
    r.n_choices = 4;
    EXPECT_EQ(code(rig.e->submit(r)), base::ErrorCode::context_length_exceeded);
    ASSERT_TRUE(rig.finish_all());
}

TEST(Engine, ARequestThatMakesNoSenseIsNamed) {
    Rig rig(config(2), pool(8));
    const auto refusal = [&](auto change) {
        Request r = rig.request("hi", 5);
        change(r);
        const auto answer = rig.e->submit(r);
        EXPECT_FALSE(answer.ok());
        return answer.ok() ? std::string() : std::string(code(answer) == base::ErrorCode::invalid_argument ? answer.error().field : "not invalid");
    };
    EXPECT_EQ(refusal([](Request& r) { r.tokens.clear(); }), "messages");
    EXPECT_EQ(refusal([](Request& r) { r.tokens[1] = 272; }), "prompt");
    EXPECT_EQ(refusal([](Request& r) { r.tokens[1] = -1; }), "prompt");
    EXPECT_EQ(refusal([](Request& r) { r.max_tokens = 0; }), "max_tokens");
    EXPECT_EQ(refusal([](Request& r) { r.n_choices = 0; }), "n");
    EXPECT_EQ(refusal([](Request& r) { r.n_choices = 3; }), "n");
    EXPECT_EQ(refusal([](Request& r) { r.stop = {""}; }), "stop");
    EXPECT_EQ(refusal([](Request& r) { r.stop = {"\xA9"}; }), "stop");
    EXPECT_EQ(refusal([](Request& r) { r.stop = {std::string(257, 'x')}; }), "stop");
    EXPECT_EQ(refusal([](Request& r) { r.stop.assign(17, "x"); }), "stop");
    EXPECT_EQ(refusal([](Request& r) { r.top_logprobs = 21; }), "top_logprobs");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.temperature = NAN; }), "temperature");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.temperature = -0.1f; }), "temperature");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.top_k = -1; }), "top_k");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.top_p = 0.0f; }), "top_p");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.min_p = 1.0f; }), "min_p");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.typical_p = 1.1f; }), "typical_p");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.repetition_penalty = 0.0f; }), "repetition_penalty");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.presence_penalty = 2.1f; }), "presence_penalty");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.frequency_penalty = -2.1f; }), "frequency_penalty");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.repetition_last_n = -2; }), "repetition_last_n");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.logit_bias = {{272, 1.0f}}; }), "logit_bias");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.logit_bias = {{1, 101.0f}}; }), "logit_bias");
    EXPECT_EQ(refusal([](Request& r) { r.sampling.logit_bias.assign(1'025, {1, 1.0f}); }), "logit_bias");
    EXPECT_FALSE(rig.e->has_work());
}

TEST(Engine, AnIdInUseIsRefused) {
    Rig rig(config(), pool(8));
    Request r = rig.request("hi", 5);
    ASSERT_TRUE(rig.e->submit(r));
    EXPECT_EQ(code(rig.e->submit(r)), base::ErrorCode::internal);
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(r.id).tokens.size(), 5u);
}

TEST(Engine, WhileDrainingNothingNewIsTakenAndTheRestFinishes) {
    Rig rig(config(1), pool(8));
    Request running = rig.request("a", 20), waiting = rig.request("b", 20);
    ASSERT_TRUE(rig.e->submit(running));
    ASSERT_TRUE(rig.e->submit(waiting));
    rig.step();
    rig.e->start_draining();
    EXPECT_EQ(code(rig.e->submit(rig.request("c", 1))), base::ErrorCode::unavailable);
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(running.id).tokens.size(), 20u);
    EXPECT_EQ(rig.answer(waiting.id).tokens.size(), 20u);
}

// --- the prefix cache ------------------------------------------------------------------------------------------------

// L PR#22083, L#28139: another prompt in between, and everything was computed again.
TEST(Engine, APromptAfterAnotherStillFindsItsPrefix) {
    Rig rig(config(), pool(64));
    for (const uint32_t key : {1u, 2u, 1u, 2u}) {
        Request r = rig.long_request(200, 4, key);
        const bool again = rig.next_id > 3;
        ASSERT_TRUE(rig.e->submit(r));
        ASSERT_TRUE(rig.finish_all());
        EXPECT_EQ(rig.answer(r.id).usage.cached_tokens, again ? 192u : 0u);
        EXPECT_EQ(rig.answer(r.id).tokens, greedy(rig, r.tokens, 4));
    }
}

TEST(Engine, AnAnswerIsAPrefixOfTheNextTurn) {
    Rig rig(config(), pool(64));
    Request first = rig.long_request(100, 60);
    ASSERT_TRUE(rig.e->submit(first));
    ASSERT_TRUE(rig.finish_all());
    Request second = first;
    second.id = rig.next_id++;
    for (const TokenId t : rig.answer(first.id).tokens) second.tokens.push_back(t);
    second.tokens.push_back('?');
    ASSERT_TRUE(rig.e->submit(second));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(second.id).usage.cached_tokens, 128u);  // 159 positions were computed: two full blocks
    EXPECT_EQ(rig.answer(second.id).tokens, greedy(rig, second.tokens, 60));
}

TEST(Engine, APrefixOfAnotherKeyIsNotUsed) {
    Rig rig(config(), pool(64));
    Request a = rig.long_request(200, 4), b = a, c = a, d = a;
    a.cache_salt = 1;
    b.id = rig.next_id++;
    b.cache_salt = 2;
    c.id = rig.next_id++;
    c.cache_salt = 1;
    d.id = rig.next_id++;
    d.cache_salt = 1;
    d.cache_prompt = false;
    for (const Request* r : {&a, &b, &c, &d}) {
        ASSERT_TRUE(rig.e->submit(*r));
        ASSERT_TRUE(rig.finish_all());
    }
    EXPECT_EQ(rig.answer(b.id).usage.cached_tokens, 0u);
    EXPECT_EQ(rig.answer(c.id).usage.cached_tokens, 192u);
    EXPECT_EQ(rig.answer(d.id).usage.cached_tokens, 0u);
}

// sglang#36475: a disconnect in one turn spoilt the conversation's cached context.
TEST(Engine, AfterACancelledTurnTheNextOneSeesTheWholePrompt) {
    for (int steps = 0; steps < 12; ++steps) {
        EngineConfig c = config();
        c.prefill_chunk_max = 50;
        Rig rig(c, pool(64));
        Request dropped = rig.long_request(230, 40);
        ASSERT_TRUE(rig.e->submit(dropped));
        for (int i = 0; i < steps; ++i) rig.step();
        rig.e->cancel(dropped.id);
        rig.step();
        EXPECT_EQ(rig.answer(dropped.id).finish, FinishReason::cancelled);
        Request next = dropped;
        next.id = rig.next_id++;
        next.tokens.push_back('!');
        ASSERT_TRUE(rig.e->submit(next));
        ASSERT_TRUE(rig.finish_all());
        EXPECT_EQ(rig.answer(next.id).tokens, greedy(rig, next.tokens, 40)) << steps;
    }
}

// --- several at once -------------------------------------------------------------------------------------------------

// L#7052 and others: the same prompt at temperature 0 gave several texts in several slots.
TEST(Engine, IdenticalGreedyRequestsAtOnceGiveOneText) {
    Rig rig(config(), pool(512));
    std::vector<Request> all;
    for (int i = 0; i < 32; ++i) {
        all.push_back(rig.long_request(90, 40, 3));
        ASSERT_TRUE(rig.e->submit(all.back()));
        if (i % 5 == 0) rig.step();
    }
    ASSERT_TRUE(rig.finish_all());
    std::set<std::string> texts;
    for (const Request& r : all) texts.insert(rig.answer(r.id).text);
    EXPECT_EQ(texts.size(), 1u);
    EXPECT_EQ(rig.answer(all[0].id).tokens, greedy(rig, all[0].tokens, 40));
}

TEST(Engine, PauseAndResumeChangeNothingButTheTime) {
    Rig rig(config(), pool(64));
    Request r = rig.request("hello", 30), other = rig.request("other", 30);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.e->submit(other));
    for (int i = 0; i < 5; ++i) rig.step();
    rig.e->pause(r.id);
    rig.step();
    const size_t had = rig.answer(r.id).tokens.size();
    for (int i = 0; i < 10; ++i) rig.step();
    EXPECT_EQ(rig.answer(r.id).tokens.size(), had);
    for (int i = 0; i < 30; ++i) rig.step();
    EXPECT_EQ(rig.answer(other.id).finish, FinishReason::length);
    EXPECT_FALSE(rig.e->step());  // work, but none that may be done
    EXPECT_TRUE(rig.e->has_work());
    rig.e->resume(r.id);
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(r.id).tokens, greedy(rig, r.tokens, 30));
}

TEST(Engine, AReaderThatSleepsStopsSequencesAndLosesNothing) {
    EngineConfig c = config(8);
    c.event_ring_entries = 64;
    Rig rig(c, pool(64));
    std::vector<Request> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(rig.request("hello " + std::to_string(i), 40));
        ASSERT_TRUE(rig.e->submit(all.back()));
    }
    int steps = 0;
    while (rig.e->step()) ASSERT_LT(++steps, 100);  // until the ring is full
    EXPECT_TRUE(rig.e->has_work());
    EXPECT_GT(rig.e->metrics().event_room_waits.load(), 0u);
    rig.e->check_integrity();
    ASSERT_TRUE(rig.finish_all());
    for (const Request& r : all) EXPECT_EQ(rig.answer(r.id).tokens, greedy(rig, r.tokens, 40));
}

TEST(Engine, ACancelFreesTheBlocksThoughTheReaderSleeps) {
    EngineConfig c = config(8);
    c.event_ring_entries = 40;
    Rig rig(c, pool(64));
    std::vector<Request> all;
    for (int i = 0; i < 8; ++i) {
        all.push_back(rig.request("hello " + std::to_string(i), 40));
        ASSERT_TRUE(rig.e->submit(all.back()));
    }
    while (rig.e->step()) {}
    for (const Request& r : all) rig.e->cancel(r.id);
    rig.e->step();
    rig.e->check_integrity();
    EXPECT_EQ(rig.e->stats().kv_blocks_pinned, 0u);
    EXPECT_EQ(rig.e->stats().kv_blocks_reserved, 0u);
    ASSERT_TRUE(rig.finish_all());
    for (const Request& r : all) EXPECT_EQ(rig.answer(r.id).finish, FinishReason::cancelled);
}

// --- time ------------------------------------------------------------------------------------------------------------

TEST(Engine, UsageTellsWhereTheTimeWent) {
    EngineConfig c = config(1);
    c.prefill_chunk_max = 50;
    support::FakeModelConfig m = pool(64);
    m.step_ns = 10'000'000;
    m.row_ns = 0;
    Rig rig(c, m);
    Request first = rig.long_request(100, 5, 1), second = rig.long_request(120, 5, 2);
    ASSERT_TRUE(rig.e->submit(first));
    ASSERT_TRUE(rig.e->submit(second));
    ASSERT_TRUE(rig.finish_all());
    const Usage a = rig.answer(first.id).usage, b = rig.answer(second.id).usage;
    EXPECT_EQ(a.queue_ns, 0);
    EXPECT_EQ(a.prefill_ns, 20'000'000);  // two chunks
    EXPECT_EQ(a.decode_ns, 40'000'000);   // four more tokens
    EXPECT_EQ(b.queue_ns, 60'000'000);
    EXPECT_EQ(b.prefill_ns, 30'000'000);
    EXPECT_EQ(b.decode_ns, 40'000'000);
}

// vllm#6337: latency histograms with everything in the lowest bucket.
TEST(Engine, HistogramsHoldEachDelayInItsBucket) {
    support::FakeModelConfig m = pool(64);
    m.step_ns = 30'000'000;
    m.row_ns = 0;
    Rig rig(config(), m);
    Request r = rig.request("hi", 5);
    r.arrival_ns = rig.clock.now_ns() - 100'000'000;  // tokenizing took 100 ms
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    const EngineMetrics& metrics = rig.e->metrics();
    const auto only_bucket = [](const Histogram& h, double bound, uint64_t count) {
        for (size_t i = 0; i <= h.bounds().size(); ++i) {
            const bool here = i < h.bounds().size() && h.bounds()[i] == bound;
            EXPECT_EQ(h.bucket(i), here ? count : 0u) << "bucket " << i << " for " << bound;
        }
    };
    only_bucket(metrics.ttft_s, 0.25, 1);   // 130 ms
    only_bucket(metrics.itl_s, 0.03, 4);
    only_bucket(metrics.e2e_s, 0.3, 1);     // 250 ms
    only_bucket(metrics.prompt_tokens, 2, 1);
    only_bucket(metrics.generation_tokens, 5, 1);
    EXPECT_EQ(metrics.step_rows.bucket(0), 4u);  // one row
    EXPECT_EQ(metrics.step_rows.bucket(1), 1u);  // the prompt's two
    EXPECT_NEAR(metrics.itl_s.sum(), 0.12, 1e-9);
    EXPECT_NEAR(metrics.ttft_s.sum(), 0.13, 1e-9);
}

TEST(Engine, RetryAfterFollowsTheMeasuredRate) {
    support::FakeModelConfig m = pool(64);
    m.step_ns = 1'000'000'000;
    m.row_ns = 0;
    Rig rig(config(1, 8), m);
    EXPECT_EQ(rig.e->retry_after_s(), 5u);  // nothing measured yet
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(rig.e->submit(rig.request("hi", 2)));
    EXPECT_EQ(code(rig.e->submit(rig.request("hi", 2))), base::ErrorCode::queue_full);
    for (int i = 0; i < 8; ++i) rig.step();  // four finish, one every 2 s
    EXPECT_EQ(rig.e->stats().waiting, 5u);
    EXPECT_EQ(rig.e->retry_after_s(), 12u);  // 5 that wait and one's own, 2 s each
    rig.clock.advance_ms(1'000'000);
    EXPECT_EQ(rig.e->retry_after_s(), 60u);
}

TEST(Engine, OnlyAStepThatTakesTooLongLooksStuck) {
    Rig rig(config(), pool(8));
    constexpr int64_t limit_ns = 10'000'000'000;
    ASSERT_TRUE(rig.e->submit(rig.request("hi", 50)));
    EXPECT_FALSE(is_stuck(*rig.e, rig.clock.now_ns() + 100 * limit_ns, limit_ns));  // not even begun
    rig.step();
    rig.e->pause(1);
    rig.step();
    rig.clock.advance_ms(60'000);
    EXPECT_FALSE(is_stuck(*rig.e, rig.clock.now_ns(), limit_ns));  // waits for a client

    // Seen from inside a step that hangs.
    struct Hanging final : model::ForwardPass {
        support::FakeModel& inner;
        Rig& rig;
        bool was_stuck = false, was_well = false;
        Hanging(support::FakeModel& m, Rig& r) : inner(m), rig(r) {}
        uint32_t n_vocab() const override { return inner.n_vocab(); }
        uint32_t context_length() const override { return inner.context_length(); }
        uint32_t kv_blocks_count() const override { return inner.kv_blocks_count(); }
        Engine* engine = nullptr;
        model::Logits forward(const model::Batch& batch) override {
            was_well = !is_stuck(*engine, rig.clock.now_ns(), limit_ns);
            rig.clock.advance_ms(10'001);
            was_stuck = is_stuck(*engine, rig.clock.now_ns(), limit_ns);
            return inner.forward(batch);
        }
    } hanging(*rig.fake, rig);
    EngineConfig c = config();
    c.context_length = 64;
    const auto engine = Engine::create(c, hanging, rig.tokenizer, rig.clock, nullptr);
    hanging.engine = engine.get();
    ASSERT_TRUE(engine->submit(rig.request("hi", 1)));
    engine->step();
    EXPECT_TRUE(hanging.was_well);
    EXPECT_TRUE(hanging.was_stuck);
    EXPECT_FALSE(is_stuck(*engine, rig.clock.now_ns(), limit_ns));
}
