// The scheduler alone, on tiny pools: who gets how many rows, who waits, who may pass.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>

using namespace engine;

namespace {

constexpr uint32_t plenty = 1'000'000;

std::unique_ptr<RequestState> make(RequestId id, uint32_t n_prompt, uint32_t max_tokens, uint32_t n_choices = 1, TokenId first = -1) {
    auto state = std::make_unique<RequestState>();
    RequestState& r = *state;
    r.request.id = id;
    r.request.max_tokens = max_tokens;
    r.n_prompt = n_prompt;
    r.blocks_first = blocks_for(uint64_t{n_prompt} + max_tokens - 1);
    r.blocks_further = r.blocks_first - n_prompt / block_tokens;
    r.choices.resize(n_choices);
    for (uint32_t c = 0; c < n_choices; ++c) {
        Sequence& s = r.choices[c];
        s.request = state.get();
        s.choice = c;
        s.n_prompt = n_prompt;
        s.tokens.reserve(n_prompt + max_tokens);
        s.tokens.assign(n_prompt, first >= 0 ? first : static_cast<TokenId>(id));
        s.block_table.reserve(r.blocks_first);
    }
    return state;
}

// Schedules and computes one step; every choice gets token 7, and ends when it has max_tokens.
struct Bench {
    explicit Bench(SchedulerConfig config, uint32_t blocks) : ring(blocks), scheduler(config, ring) {}

    std::vector<std::pair<RequestId, uint32_t>> step(int64_t now_ns = 0, uint32_t event_room = plenty) {
        const Step& s = scheduler.schedule(now_ns, event_room);
        std::vector<std::pair<RequestId, uint32_t>> rows;
        std::vector<Sampled> sampled;
        n_decode = s.n_decode_rows;
        n_prefill = s.n_prefill_rows;
        lacks_event_room = s.lacks_event_room;
        EXPECT_EQ(s.batch.tokens.size(), n_decode + n_prefill);
        for (const Scheduled& x : s.scheduled) {
            RequestState& r = *x.sequence->request;
            rows.emplace_back(r.request.id, x.n_rows);
            if (!x.samples) continue;
            const auto one = [&](Sequence& c) { sampled.push_back({&c, 7, c.n_generated() + 1 == r.request.max_tokens}); };
            if (x.sequence->choice == 0 && x.sequence->n_generated() == 0) {
                for (Sequence& c : r.choices) one(c);
            } else {
                one(*x.sequence);
            }
        }
        EXPECT_EQ(s.batch.logit_rows.size() > 0, !sampled.empty());
        scheduler.check_integrity();
        scheduler.update(sampled);
        scheduler.check_integrity();
        return rows;
    }

    KvRing ring;
    Scheduler scheduler;
    uint32_t n_decode = 0, n_prefill = 0;
    bool lacks_event_room = false;
};

using Rows = std::vector<std::pair<RequestId, uint32_t>>;

SchedulerConfig config(uint32_t sequences, uint32_t step_tokens, uint32_t chunk) {
    SchedulerConfig c;
    c.sequences_max = sequences;
    c.step_tokens_max = step_tokens;
    c.prefill_chunk_max = chunk;
    return c;
}

}  // namespace

TEST(Scheduler, APromptIsComputedInChunksThenDecodes) {
    Bench b(config(4, 32, 10), 8);
    auto a = make(1, 25, 3);
    b.scheduler.submit(*a);
    EXPECT_EQ(b.step(), (Rows{{1, 10}}));
    EXPECT_EQ(b.step(), (Rows{{1, 10}}));
    EXPECT_EQ(b.step(), (Rows{{1, 5}}));
    EXPECT_EQ(b.step(), (Rows{{1, 1}}));
    EXPECT_EQ(b.n_decode, 1u);
    EXPECT_EQ(b.step(), (Rows{{1, 1}}));
    EXPECT_EQ(a->n_open, 0u);
    EXPECT_EQ(b.step(), Rows{});
    EXPECT_EQ(b.ring.pinned() + b.ring.reserved(), 0u);
}

TEST(Scheduler, DecodeRowsComeBeforePrefillAndShareAStep) {
    Bench b(config(4, 8, 100), 16);
    auto a = make(1, 5, 50), c = make(2, 100, 5);
    b.scheduler.submit(*a);
    b.step();
    b.scheduler.submit(*c);
    EXPECT_EQ(b.step(), (Rows{{1, 1}, {2, 7}}));
    EXPECT_EQ(b.n_decode, 1u);
    EXPECT_EQ(b.n_prefill, 7u);
}

// vllm#10774: a short request after a long one seemed stuck.
TEST(Scheduler, AShortPromptIsNotHeldUpByALongOneBeforeIt) {
    Bench b(config(8, 64, 64), 64);
    auto big = make(1, 2'000, 5);
    b.scheduler.submit(*big);
    b.step();
    auto small = make(2, 30, 5);
    b.scheduler.submit(*small);
    EXPECT_EQ(b.step(), (Rows{{1, 34}, {2, 30}}));  // half each; what the short one leaves goes to the long one
    EXPECT_EQ(small->choices[0].n_generated(), 1u);
}

TEST(Scheduler, PromptsInProgressShareTheRowsEvenly) {
    Bench b(config(8, 60, 60), 64);
    auto a = make(1, 300, 5), c = make(2, 300, 5), d = make(3, 10, 5);
    for (auto* r : {a.get(), c.get(), d.get()}) b.scheduler.submit(*r);
    EXPECT_EQ(b.step(), (Rows{{1, 25}, {2, 25}, {3, 10}}));
}

TEST(Scheduler, WithMorePromptsThanRowsEachStepServesSome) {
    Bench b(config(8, 8, 64), 64);
    std::vector<std::unique_ptr<RequestState>> all;
    for (RequestId id = 1; id <= 8; ++id) {
        all.push_back(make(id, 20, 2));
        b.scheduler.submit(*all.back());
    }
    for (int i = 0; i < 25; ++i) b.step();
    for (const auto& r : all) EXPECT_EQ(r->n_open, 0u);
}

TEST(Scheduler, WhatIsAdmittedIsWhatCanFinish) {
    Bench b(config(8, 64, 64), 4);
    auto a = make(1, 64, 65);   // 128 positions: 2 blocks
    auto c = make(2, 64, 66);   // 129: 3 blocks
    auto d = make(3, 64, 64);   // 127: 2 blocks
    for (auto* r : {a.get(), c.get(), d.get()}) b.scheduler.submit(*r);
    b.step();
    EXPECT_EQ(b.scheduler.n_running(), 2u);
    EXPECT_EQ(b.scheduler.n_waiting(), 1u);
    EXPECT_EQ(c->choices[0].state, SequenceState::waiting);
    EXPECT_EQ(d->choices[0].state, SequenceState::running);  // passed the blocked one
    EXPECT_EQ(c->times_passed, 1u);
    EXPECT_EQ(b.scheduler.bypasses(), 1u);
    for (int i = 0; i < 200; ++i) b.step();
    EXPECT_EQ(a->n_open + c->n_open + d->n_open, 0u);
}

TEST(Scheduler, ABlockedHeadIsPassedABoundedNumberOfTimes) {
    Bench b(config(64, 64, 64), 4);
    auto holder = make(1, 10, 64 + 1);  // 74: 2 blocks for a long time
    b.scheduler.submit(*holder);
    b.step();
    auto head = make(2, 150, 40);  // 3 blocks: must wait for the holder
    b.scheduler.submit(*head);
    std::vector<std::unique_ptr<RequestState>> small;
    uint32_t passed = 0;
    for (RequestId id = 3; id < 30; ++id) {
        small.push_back(make(id, 10, 1));  // 1 block for one step
        b.scheduler.submit(*small.back());
        b.step();
        passed += small.back()->n_open == 0;
    }
    EXPECT_EQ(passed, limits::bypass_requests);
    EXPECT_EQ(head->times_passed, limits::bypass_requests);
    for (int i = 0; i < 200; ++i) b.step();
    EXPECT_EQ(head->n_open, 0u);
    for (const auto& r : small) EXPECT_EQ(r->n_open, 0u);
}

TEST(Scheduler, ABlockedHeadIsPassedForABoundedTime) {
    Bench b(config(64, 64, 64), 4);
    auto holder = make(1, 10, 64 + 1), head = make(2, 150, 40), early = make(3, 10, 1), late = make(4, 10, 1);
    b.scheduler.submit(*holder);
    b.step();
    b.scheduler.submit(*head);
    b.scheduler.submit(*early);
    b.step(1'000'000);
    EXPECT_EQ(early->n_open, 0u);
    b.scheduler.submit(*late);
    b.step(1'000'000 + limits::bypass_time_ms * 1'000'000);
    EXPECT_EQ(late->choices[0].state, SequenceState::waiting);
    for (int i = 0; i < 200; ++i) b.step(10'000'000'000);
    EXPECT_EQ(head->n_open + late->n_open, 0u);
}

// vllm PR 37307: a long prompt admitted by its first chunk alone, preempted and computed again and again.
TEST(Scheduler, ALongPromptWaitsUntilAllOfItFitsAndIsComputedOnce) {
    Bench b(config(8, 128, 128), 20);
    std::vector<std::unique_ptr<RequestState>> longs;
    for (RequestId id = 1; id <= 5; ++id) {
        longs.push_back(make(id, 250, 20));  // 269: 5 blocks; four fill the pool
        b.scheduler.submit(*longs.back());
    }
    uint32_t n_prefill = 0;
    for (int i = 0; i < 100; ++i) {
        b.step();
        n_prefill += b.n_prefill;
    }
    for (const auto& r : longs) EXPECT_EQ(r->n_open, 0u);
    EXPECT_EQ(n_prefill, 5u * 250u);
}

TEST(Scheduler, AHitIsLookedUpAtAdmissionAndNotBefore) {
    Bench b(config(1, 256, 256), 16);
    auto a = make(1, 200, 3, 1, 5), c = make(2, 200, 3, 1, 5);
    b.scheduler.submit(*a);
    b.scheduler.submit(*c);  // when it came, nothing was cached
    EXPECT_EQ(b.step(), (Rows{{1, 200}}));
    for (int i = 0; i < 3; ++i) b.step();
    EXPECT_EQ(c->n_cached, 192u);
    EXPECT_EQ(c->choices[0].n_computed, 200u);
}

TEST(Scheduler, AFurtherChoiceSharesTheFullBlocksOfThePrompt) {
    Bench b(config(4, 512, 512), 16);
    auto r = make(1, 150, 10, 3);  // 2 full blocks and 22 tokens
    b.scheduler.submit(*r);
    EXPECT_EQ(b.step(), (Rows{{1, 150}}));
    for (const Sequence& s : r->choices) {
        EXPECT_EQ(s.state, SequenceState::running);
        EXPECT_EQ(s.n_generated(), 1u);
        EXPECT_EQ(s.block_table[0], r->choices[0].block_table[0]);
        EXPECT_EQ(s.block_table[1], r->choices[0].block_table[1]);
    }
    EXPECT_EQ(b.step(), (Rows{{1, 1}, {1, 23}, {1, 23}}));  // the rest of the prompt and the first token
    EXPECT_NE(r->choices[1].block_table[2], r->choices[2].block_table[2]);
    for (int i = 0; i < 10; ++i) b.step();
    EXPECT_EQ(r->n_open, 0u);
    EXPECT_EQ(b.ring.pinned() + b.ring.reserved(), 0u);
}

TEST(Scheduler, FurtherChoicesJoinThoughTheFirstEndsWithItsFirstToken) {
    Bench b(config(4, 512, 512), 16);
    auto r = make(1, 130, 10, 2);
    b.scheduler.submit(*r);
    const Step& s = b.scheduler.schedule(0, plenty);
    ASSERT_EQ(s.scheduled.size(), 1u);
    b.scheduler.update(std::vector<Sampled>{{&r->choices[0], 7, true}, {&r->choices[1], 8, false}});
    b.scheduler.check_integrity();
    EXPECT_EQ(r->n_open, 1u);
    EXPECT_EQ(b.step(), (Rows{{1, 3}}));
    for (int i = 0; i < 10; ++i) b.step();
    EXPECT_EQ(r->n_open, 0u);
    EXPECT_EQ(b.ring.pinned() + b.ring.reserved(), 0u);
}

TEST(Scheduler, APausedSequenceGetsNoRowsAndKeepsItsBlocks) {
    Bench b(config(4, 64, 64), 8);
    auto a = make(1, 10, 20), c = make(2, 10, 20);
    b.scheduler.submit(*a);
    b.scheduler.submit(*c);
    b.step();
    a->paused = true;
    const uint32_t held = b.ring.pinned() + b.ring.reserved();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(b.step(), (Rows{{2, 1}}));
    EXPECT_EQ(b.ring.pinned() + b.ring.reserved(), held);
    a->paused = false;
    EXPECT_EQ(b.step().size(), 2u);
}

// A pause says nothing about the queue: the request is admitted in its turn, so that what submit() counted on comes true.
TEST(Scheduler, APausedRequestIsAdmittedAndGetsNoRows) {
    Bench b(config(1, 64, 64), 8);
    auto a = make(1, 10, 2);
    a->paused = true;
    b.scheduler.submit(*a);
    EXPECT_EQ(b.step(), Rows{});
    EXPECT_EQ(a->choices[0].state, SequenceState::running);
    a->paused = false;
    b.step();
    b.step();
    EXPECT_EQ(a->n_open, 0u);
}

TEST(Scheduler, WithoutEventRoomASequenceWaitsAndTurnsAreTaken) {
    SchedulerConfig cfg = config(4, 64, 64);
    cfg.events_per_token = 2;
    Bench b(cfg, 8);
    auto a = make(1, 10, 20), c = make(2, 10, 20);
    b.scheduler.submit(*a);
    b.scheduler.submit(*c);
    EXPECT_EQ(b.step(0, 3), (Rows{{1, 10}, {2, 9}}));  // the second one's last prompt token needs events
    EXPECT_TRUE(b.lacks_event_room);
    EXPECT_EQ(b.step(0, 1), Rows{});
    for (int i = 0; i < 10; ++i) EXPECT_EQ(b.step(0, 2).size(), 1u);
    EXPECT_GE(a->choices[0].n_generated(), 5u);
    EXPECT_GE(c->choices[0].n_generated(), 5u);
}

TEST(Scheduler, CancelInEveryStateGivesEverythingBack) {
    for (int state = 0; state < 7; ++state) {
        Bench b(config(3, 32, 32), 12);
        auto r = make(1, 70, 20, state >= 4 ? 2 : 1);
        auto other = make(2, 300, 30);
        b.scheduler.submit(*other);
        b.step();
        if (state == 1) {  // blocked for blocks
            auto big = make(3, 500, 20);
            b.scheduler.submit(*big);
            b.step();
            EXPECT_TRUE(big->is_waiting);
            b.scheduler.cancel(*big);
            EXPECT_EQ(big->n_open, 0u);
        } else {
            b.scheduler.submit(*r);
            const int steps = state == 0 ? 0 : state == 2 ? 1 : state == 3 ? 8 : state == 4 ? 1 : state == 5 ? 5 : 12;
            for (int i = 0; i < steps; ++i) b.step();
            if (state == 6) r->paused = true;
            b.scheduler.cancel(*r);
            EXPECT_EQ(r->n_open, 0u);
        }
        b.scheduler.check_integrity();
        EXPECT_EQ(b.scheduler.n_running(), 1u);
        b.scheduler.cancel(*other);
        b.scheduler.check_integrity();
        EXPECT_EQ(b.ring.pinned() + b.ring.reserved(), 0u);
        EXPECT_EQ(b.scheduler.n_waiting(), 0u);
    }
}
