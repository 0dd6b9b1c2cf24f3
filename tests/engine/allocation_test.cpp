// A step allocates nothing: counted by the global operator new of this program.
#include <gtest/gtest.h>

#include "tests/support/allocation_counter.h"
#include "tests/engine/rig.h"

using namespace engine;
using engine_test::Rig;

TEST(Allocation, TheCounterCounts) {
    // A new-expression may be left out by the compiler.
    EXPECT_EQ(support::allocations_of([] { ::operator delete(::operator new(1)); }), 1u);
}

// Not only the steady state: arrivals, admissions, chunks, hits, joins, stop strings, log probabilities, penalties,
// cancels, pauses, ends and a full event ring.
TEST(Allocation, NoStepOfAnyKindAllocates) {
    EngineConfig c;
    c.sequences_max = 8;
    c.step_tokens_max = 64;
    c.prefill_chunk_max = 40;
    c.event_ring_entries = 200;
    support::FakeModelConfig m;
    m.kv_blocks_count = 40;
    m.bias.assign(m.n_vocab, 0.0f);
    m.bias['a'] = m.bias['b'] = 2.0f;
    Rig rig(c, m);
    uint64_t steps = 0;
    std::vector<RequestId> ids;
    for (uint32_t i = 0; i < 300; ++i) {
        Request r = rig.long_request(1 + i * 7 % 180, 1 + i * 5 % 40, i % 4);
        r.sampling.temperature = i % 3 == 0 ? 0.0f : 1.0f;
        if (i % 4 == 1) r.sampling.top_p = 0.9f;
        if (i % 5 == 1) r.sampling.top_k = 40;
        if (i % 7 == 1) r.sampling.typical_p = 0.5f;
        if (i % 6 == 1) r.sampling.min_p = 0.1f;
        if (i % 5 == 2) r.sampling.repetition_penalty = 1.3f;
        if (i % 5 == 3) r.sampling.logit_bias = {{'q', 5.0f}};
        r.logprobs = i % 3 == 1;
        r.top_logprobs = i % 3 == 1 ? 5 : 0;
        r.n_choices = i % 9 == 0 ? 3 : 1;
        if (i % 2 == 0) r.stop = {"ab", "aab", "zzz"};
        ids.push_back(r.id);
        (void)rig.e->submit(std::move(r));
        if (i % 11 == 0) rig.e->cancel(ids.back());
        if (i % 13 == 0) rig.e->pause(ids.back());
        if (i % 13 == 9) rig.e->resume(ids[ids.size() - 10]);
        for (int k = 0; k < 4; ++k) {
            ASSERT_EQ(support::allocations_of([&] { rig.e->step(); }), 0u) << "step " << steps;
            ++steps;
            if (i % 32 < 22) rig.drain();
        }
    }
    for (const RequestId id : ids) rig.e->resume(id);
    ASSERT_TRUE(rig.finish_all());
    EXPECT_GT(rig.e->stats().mixed_steps, 100u);
    EXPECT_GT(rig.e->stats().cached_tokens, 500u);
    EXPECT_GT(rig.e->stats().finished_stop, 20u);
    EXPECT_GT(rig.e->stats().finished_cancelled, 5u);
    EXPECT_GT(rig.e->metrics().event_room_waits.load(), 0u);
}
