// The engine on its own thread: several submitters, one reader. Meant for ThreadSanitizer as much as for the asserts.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "engine/engine_thread.h"
#include "tests/engine/plain_answer.h"
#include "tests/support/fake_clock.h"

using namespace engine;
using namespace std::chrono_literals;

namespace {

struct Wake {
    std::mutex mutex;
    std::condition_variable changed;
    bool rung = false;
    void ring() {
        const std::lock_guard lock(mutex);
        rung = true;
        changed.notify_one();
    }
    void wait() {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, 100ms, [this] { return rung; });
        rung = false;
    }
};

struct Outcome {
    std::vector<TokenId> tokens;
    FinishReason finish = FinishReason::none;
    bool last = false;
};

}  // namespace

TEST(EngineThread, SubmittersReaderAndCancelsAllGetTheirEnds) {
    const uint32_t each = std::getenv("HEARTH_VERIFY") != nullptr ? 5'000 : 300;
    constexpr uint32_t n_submitters = 4;
    support::FakeTokenizer tokenizer;
    support::FakeModelConfig m;
    m.kv_blocks_count = 32;
    m.context_length = 512;
    support::FakeModel model(m);
    EngineConfig c;
    c.context_length = 512;
    c.sequences_max = 6;
    c.queue_requests_max = 12;
    c.event_ring_entries = 120;
    Wake wake;
    const auto engine = Engine::create(c, model, tokenizer, base::system_clock(), [&wake] { wake.ring(); });
    EngineThread thread(*engine);
    thread.start();

    std::mutex mutex;  // protects sent
    std::map<RequestId, Request> sent;
    std::map<RequestId, Outcome> outcomes;  // the reader's
    std::atomic<uint32_t> submitters_left{n_submitters}, n_accepted{0}, n_refused{0};
    std::vector<std::thread> submitters;
    for (uint32_t t = 0; t < n_submitters; ++t) {
        submitters.emplace_back([&, t] {
            std::mt19937_64 random(t);
            for (uint32_t i = 0; i < each; ++i) {
                Request r;
                r.id = t * 1'000'000 + i + 1;
                for (uint32_t n = 1 + static_cast<uint32_t>(random() % 150); n > 0; --n) r.tokens.push_back('a' + static_cast<TokenId>(n % 26));
                r.max_tokens = 1 + static_cast<uint32_t>(random() % 20);
                r.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
                r.sampling.seed = i;
                r.arrival_ns = base::system_clock().now_ns();
                {
                    const std::lock_guard lock(mutex);
                    sent[r.id] = r;
                }
                while (true) {
                    const base::Result<void> answer = engine->submit(r);
                    if (answer.ok()) break;
                    ASSERT_EQ(answer.error().code, base::ErrorCode::queue_full);
                    n_refused += 1;
                    (void)engine->retry_after_s();
                    std::this_thread::sleep_for(50us);
                }
                n_accepted += 1;
                if (random() % 6 == 0) engine->cancel(r.id - random() % 3);
                if (random() % 6 == 0) {
                    engine->pause(r.id);
                    (void)engine->stats();
                    engine->resume(r.id);
                }
            }
            submitters_left -= 1;
        });
    }
    Event event;
    uint64_t ended = 0;
    const auto deadline = std::chrono::steady_clock::now() + 240s;
    while (submitters_left > 0 || ended < n_accepted) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        wake.wait();
        while (engine->pop_event(event)) {
            Outcome& o = outcomes[event.id];
            ASSERT_FALSE(o.last);
            if (event.token >= 0) o.tokens.push_back(event.token);
            if (event.finish_reason == FinishReason::none) continue;
            o.finish = event.finish_reason;
            o.last = event.last_choice;
            ended += 1;
        }
    }
    for (std::thread& s : submitters) s.join();
    thread.stop();
    engine->check_integrity();
    EXPECT_FALSE(engine->has_work());
    EXPECT_EQ(engine->stats().kv_blocks_pinned, 0u);
    EXPECT_EQ(outcomes.size(), n_submitters * each);
    uint32_t n_cancelled = 0;
    for (const auto& [id, o] : outcomes) {
        const std::vector<TokenId> want = engine_test::plain_answer(model, tokenizer, sent[id], 0).tokens;
        ASSERT_LE(o.tokens.size(), want.size());
        ASSERT_TRUE(std::equal(o.tokens.begin(), o.tokens.end(), want.begin()));
        if (o.finish == FinishReason::cancelled) {
            n_cancelled += 1;
        } else {
            ASSERT_EQ(o.tokens.size(), want.size());
        }
    }
    EXPECT_GT(n_cancelled, 0u);
    EXPECT_LT(n_cancelled, n_submitters * each / 2);
}

// A reader that sleeps until the ring is full, then reads without submitting anything: room alone must wake the engine.
TEST(EngineThread, ReadingWakesAnEngineThatWaitsForRoom) {
    support::FakeTokenizer tokenizer;
    support::FakeModelConfig m;
    m.bias.assign(m.n_vocab, 0.0f);
    m.bias[support::FakeTokenizer::eos] = m.bias[support::FakeTokenizer::eot] = -50.0f;
    support::FakeModel model(m);
    EngineConfig c;
    c.context_length = 4'096;
    c.sequences_max = 4;
    c.event_ring_entries = 24;
    const auto engine = Engine::create(c, model, tokenizer, base::system_clock(), nullptr);
    EngineThread thread(*engine);
    thread.start();
    for (RequestId id = 1; id <= 4; ++id) {
        Request r;
        r.id = id;
        r.tokens = {static_cast<TokenId>('a' + id)};
        r.max_tokens = 500;
        ASSERT_TRUE(engine->submit(std::move(r)));
    }
    Event event;
    int ended = 0;
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    std::mt19937 random(1);
    while (ended < 4) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        if (random() % 8 == 0) std::this_thread::sleep_for(100us);  // the engine runs full and waits
        if (engine->pop_event(event)) ended += event.finish_reason != FinishReason::none;
    }
    EXPECT_GT(engine->metrics().event_room_waits.load(), 10u);
    thread.stop();
    EXPECT_EQ(engine->stats().finished_length, 4u);
}

// llamafile#9, L#27687: an idle process that burns a core.
TEST(EngineThread, AnIdleEngineSleeps) {
    support::FakeTokenizer tokenizer;
    support::FakeModel model(support::FakeModelConfig{});
    EngineConfig c;
    c.context_length = 64;
    const auto engine = Engine::create(c, model, tokenizer, base::system_clock(), nullptr);
    EngineThread thread(*engine);
    thread.start();
    std::this_thread::sleep_for(50ms);
    const int64_t before = engine->stats().last_step_ns;
    std::this_thread::sleep_for(200ms);
    EXPECT_EQ(engine->stats().last_step_ns, before);  // not even an empty step
    thread.stop();
}

TEST(EngineThread, StopReturnsWithWorkLeft) {
    support::FakeTokenizer tokenizer;
    support::FakeModel model(support::FakeModelConfig{});
    EngineConfig c;
    c.context_length = 4'096;
    const auto engine = Engine::create(c, model, tokenizer, base::system_clock(), nullptr);
    {
        EngineThread thread(*engine);
        thread.start();
        Request r;
        r.id = 1;
        r.tokens = {'a'};
        r.max_tokens = 4'000;
        r.ignore_eos = true;
        ASSERT_TRUE(engine->submit(std::move(r)));
    }
    engine->cancel(1);
    engine->step();
    engine->check_integrity();
    EXPECT_FALSE(engine->has_work());
}
