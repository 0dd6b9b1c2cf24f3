// A long step that goes on is healthy, one that stands still is stuck. (faults.md: a long legal prefill never trips the watchdog.)
#include <gtest/gtest.h>

#include <functional>

#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_tokenizer.h"

namespace {

constexpr int64_t second_ns = 1'000'000'000, limit_ns = 10 * second_ns;

// Takes a minute for a step; what a watcher sees meanwhile is asked every second.
class SlowPass final : public model::ForwardPass {
  public:
    SlowPass(support::FakeClock& clock, bool beats) : clock_(clock), beats_(beats), logits_(256) { logits_[5] = 1; }
    uint32_t n_vocab() const override { return 256; }
    uint32_t context_length() const override { return 256; }
    uint32_t kv_blocks_count() const override { return 4; }
    model::Logits forward(const model::Batch& batch) override {
        for (int i = 0; i < 60; ++i) {
            clock_.advance_ns(second_ns);
            if (beats_) beat();
            watch();
        }
        return {logits_.data(), static_cast<uint32_t>(batch.logit_rows.size()), 256};
    }
    std::function<void()> watch;

  private:
    support::FakeClock& clock_;
    const bool beats_;
    std::vector<float> logits_;
};

// In how many of a minute's seconds the watcher finds the engine stuck.
int seconds_stuck(bool beats) {
    support::FakeClock clock;
    support::FakeTokenizer tokenizer;
    SlowPass pass(clock, beats);
    engine::EngineConfig config;
    config.context_length = 256;
    auto engine = engine::Engine::create(config, pass, tokenizer, clock, [] {});
    int stuck = 0;
    pass.watch = [&] { stuck += engine::is_stuck(*engine, clock.now_ns(), limit_ns); };
    engine::Request request;
    request.id = 1;
    request.tokens = {'a', 'b'};
    request.max_tokens = 1;
    request.sampling.temperature = 0;
    EXPECT_TRUE(engine->submit(std::move(request)).ok());
    engine->step();
    EXPECT_FALSE(engine::is_stuck(*engine, clock.now_ns() + 100 * limit_ns, limit_ns)) << "between steps nothing is stuck";
    return stuck;
}

TEST(Watchdog, ALongStepWithSignsOfLifeIsHealthy) { EXPECT_EQ(seconds_stuck(true), 0); }
TEST(Watchdog, AStepThatStandsStillIsStuckAfterTheLimit) { EXPECT_EQ(seconds_stuck(false), 50); }

}  // namespace
