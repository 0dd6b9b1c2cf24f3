// Many requests: the queue's cap, cancels in every state, and the ledger back to empty. Each test is a way in which some
// server has failed (the number is its report), made small.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/rig.h"

using namespace engine;
using engine_test::Rig;
using support::FakeTokenizer;

namespace {

support::FakeModelConfig pool(uint32_t blocks, uint32_t context = 4'096) {
    support::FakeModelConfig m;
    m.kv_blocks_count = blocks;
    m.context_length = context;
    m.bias.assign(m.n_vocab, 0.0f);
    m.bias[FakeTokenizer::eos] = m.bias[FakeTokenizer::eot] = -50.0f;
    return m;
}

EngineConfig config(uint32_t sequences, uint32_t queue = 64) {
    EngineConfig c;
    c.sequences_max = sequences;
    c.queue_requests_max = queue;
    return c;
}

bool is_full(const base::Result<void>& r) { return !r.ok() && r.error().code == base::ErrorCode::queue_full; }

}  // namespace

// ollama#7758: the cap was ignored while a model was loaded. Here it is exact whenever the engine gets to run.
TEST(Overload, SixAtOnceWithOneSlotAndOneWaitingAreFourRefusals) {
    for (int stepped_after = 0; stepped_after <= 6; ++stepped_after) {
        Rig rig(config(1, 1), pool(64));
        int refused = 0;
        for (int i = 0; i < 6; ++i) {
            if (i == stepped_after) rig.step();
            refused += is_full(rig.e->submit(rig.request("hi", 100)));
        }
        EXPECT_EQ(refused, 4) << stepped_after;
        ASSERT_TRUE(rig.finish_all());
        EXPECT_EQ(rig.e->stats().finished_length, 2u);
    }
}

TEST(Overload, TheCapCountsThoseThatWaitForBlocksToo) {
    Rig rig(config(64, 10), pool(8));
    int accepted = 0;
    for (int i = 0; i < 40; ++i) accepted += rig.e->submit(rig.long_request(100, 29)).ok();  // 2 blocks each: four run
    EXPECT_EQ(accepted, 4 + 10);
    rig.step();
    EXPECT_EQ(rig.e->stats().running, 4u);
    EXPECT_EQ(rig.e->stats().waiting, 10u);
    EXPECT_TRUE(is_full(rig.e->submit(rig.long_request(100, 29))));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.e->stats().finished_length, 14u);
}

TEST(Overload, APlaceInTheQueueIsFreeAsSoonAsSomebodyIsAdmitted) {
    Rig rig(config(1, 1), pool(64));
    ASSERT_TRUE(rig.e->submit(rig.request("a", 3)));
    ASSERT_TRUE(rig.e->submit(rig.request("b", 3)));
    ASSERT_TRUE(is_full(rig.e->submit(rig.request("c", 3))));
    for (int i = 0; i < 3; ++i) rig.step();
    ASSERT_TRUE(is_full(rig.e->submit(rig.request("c", 3))));  // the first has finished, the second is not admitted yet
    rig.step();
    ASSERT_TRUE(rig.e->submit(rig.request("c", 3)));
    ASSERT_TRUE(rig.finish_all());
}

TEST(Overload, WithoutAQueueWhatCanRunNowIsTaken) {
    Rig rig(config(2, 0), pool(64));
    ASSERT_TRUE(rig.e->submit(rig.request("a", 3)));
    ASSERT_TRUE(rig.e->submit(rig.request("b", 3)));
    EXPECT_TRUE(is_full(rig.e->submit(rig.request("c", 3))));
    ASSERT_TRUE(rig.finish_all());
    ASSERT_TRUE(rig.e->submit(rig.request("c", 3)));
    ASSERT_TRUE(rig.finish_all());
}

// vllm#18826, #2901, mesh-llm#341: an unbounded queue.
TEST(Overload, FiveHundredRequestsOnOneSlotAreRefusedAtOnceBeyondTheCap) {
    Rig rig(config(1, 64), pool(64));
    int refused = 0;
    for (int i = 0; i < 500; ++i) {
        refused += is_full(rig.e->submit(rig.request("hi", 2)));
        if (i == 100) rig.step();
    }
    EXPECT_GE(refused, 500 - 65 - 1);
    EXPECT_LE(rig.e->stats().waiting, 64u);
    EXPECT_EQ(rig.e->metrics().refused_queue_full.load(), static_cast<uint64_t>(refused));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_TRUE(rig.is_empty());
}

// L#23652, L PR#23694: four slots each promised the whole context; the sum overflowed and all running requests failed.
// 65,536 tokens are 256 KiB of token ids and 4 KiB of block table before a single one is computed: 251 such requests are
// 64 MiB, far below the queue's 4,096.
TEST(Overload, TheStatesOfWaitingRequestsAreBoundedInBytes) {
    Rig rig(config(1, 4'096), pool(1'024, 65'536));
    std::vector<RequestId> taken;
    int refused = 0;
    for (int i = 0; i < 300; ++i) {
        Request r = rig.long_request(10, 65'526);
        const RequestId id = r.id;
        const auto result = rig.e->submit(std::move(r));
        if (result.ok()) {
            taken.push_back(id);
            continue;
        }
        ++refused;
        EXPECT_TRUE(is_full(result));
        EXPECT_NE(result.error().message.find("working memory"), std::string::npos) << result.error().message;
    }
    EXPECT_GE(taken.size(), 245u);
    EXPECT_LE(taken.size(), 252u);
    EXPECT_EQ(refused, 300 - static_cast<int>(taken.size()));
    for (const RequestId id : taken) rig.e->cancel(id);
    rig.e->step();
    rig.drain();
    rig.e->step();
    rig.drain();
    EXPECT_TRUE(rig.e->submit(rig.long_request(10, 65'526)).ok());
    EXPECT_TRUE(rig.e->submit(rig.long_request(10, 20)).ok());
}

TEST(Overload, FourStreamsThatTogetherExceedThePoolAllFinish) {
    Rig rig(config(64), pool(16, 1'024));
    for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.e->submit(rig.long_request(565, 400, i)));
    ASSERT_TRUE(rig.finish_all());
    for (RequestId id = 1; id <= 4; ++id) {
        EXPECT_EQ(rig.answer(id).finish, FinishReason::length);
        EXPECT_EQ(rig.answer(id).tokens.size(), 400u);
    }
}

// trtllm#16827: optimistic packing under shortage ended streams early.
TEST(Overload, WithAPoolOfSixtyPerCentEveryAnswerHasItsFullLength) {
    Rig rig(config(64), pool(30));  // 10 requests of 5 blocks
    for (uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(rig.e->submit(rig.long_request(200, 100, i)));
    ASSERT_TRUE(rig.finish_all());
    for (RequestId id = 1; id <= 10; ++id) EXPECT_EQ(rig.answer(id).tokens.size(), 100u);
    EXPECT_EQ(rig.e->stats().prefill_rows, 10u * 200u);  // nothing was computed twice
}

// ollama#3912: hung after some 400 long requests.
TEST(Overload, FiveHundredRequestsAtTheContextLimitAllEnd) {
    Rig rig(config(4), pool(16, 256));
    for (uint32_t i = 0; i < 500; ++i) {
        while (!rig.e->submit(rig.long_request(200, 56, i))) rig.step();
    }
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.e->stats().finished_length, 500u);
    EXPECT_TRUE(rig.is_empty());
}

// sglang#6778: blocks of finished requests did not all come back under shared prefixes.
TEST(Overload, TenThousandRequestsWithSharedPrefixesLeaveNothingBehind) {
    Rig rig(config(16), pool(64));
    std::mt19937 random(1);
    for (uint32_t i = 0; i < 10'000; ++i) {
        while (!rig.e->submit(rig.long_request(70 + random() % 130, 1 + random() % 4, i % 7))) {
            rig.e->step();
            rig.drain();
        }
    }
    ASSERT_TRUE(rig.finish_all());
    rig.e->check_integrity();
    EXPECT_EQ(rig.e->stats().finished_length, 10'000u);
    EXPECT_GT(rig.e->stats().cached_tokens, 100'000u);
    EXPECT_TRUE(rig.is_empty());
}

// trtllm PR 12313: cancelled requests were cleaned up only when new work was scheduled.
TEST(Overload, AfterCancelsTheNextStepAloneFreesEverything) {
    for (int round = 0; round < 4; ++round) {
        Rig rig(config(8, 300), pool(32));
        std::vector<RequestId> ids;
        for (uint32_t i = 0; i < 300; ++i) {
            Request r = rig.long_request(100, 29, i);
            ids.push_back(r.id);
            ASSERT_TRUE(rig.e->submit(std::move(r)));
        }
        for (int i = 0; i < round * 5; ++i) rig.step();
        for (const RequestId id : ids) rig.e->cancel(id);
        rig.step();
        EXPECT_TRUE(rig.is_empty());
        const uint64_t rows = rig.fake->seen().rows;
        for (int i = 0; i < 5; ++i) EXPECT_FALSE(rig.step());  // sglang#36333: no zombie goes on decoding
        EXPECT_EQ(rig.fake->seen().rows, rows);
        Request probe = rig.request("probe", 3);
        ASSERT_TRUE(rig.e->submit(probe));
        for (int i = 0; i < 3; ++i) rig.step();
        EXPECT_EQ(rig.answer(probe.id).finish, FinishReason::length);
    }
}

// K#1020, L#24496: a client that leaves during prompt processing, and in any other state.
TEST(Overload, ACancelInEveryStateTakesOneStep) {
    struct State {
        const char* name;
        int steps_before;
        uint32_t n_choices;
        bool paused, behind_another;
    };
    for (const State& state : {State{"in the inbox", 0, 1, false, false}, State{"waiting", 2, 1, false, true}, State{"first chunk", 1, 1, false, false},
                               State{"middle of the prompt", 3, 1, false, false}, State{"first token", 5, 1, false, false},
                               State{"decoding", 9, 1, false, false}, State{"paused in the prompt", 2, 1, true, false},
                               State{"paused decoding", 9, 1, true, false}, State{"choices before they join", 2, 3, false, false},
                               State{"choices just joined", 5, 3, false, false}, State{"choices decoding", 9, 3, false, false},
                               State{"choices in the inbox", 0, 3, false, false}, State{"choices waiting", 1, 3, false, true}}) {
        EngineConfig c = config(4);
        c.prefill_chunk_max = 40;
        Rig rig(c, pool(64));
        RequestId blocker = 0;
        if (state.behind_another) {
            Request b = rig.request("blocker", 300);
            b.n_choices = 4;
            blocker = b.id;
            ASSERT_TRUE(rig.e->submit(std::move(b)));
            rig.step();
        }
        const EngineStats before = rig.e->stats();
        Request r = rig.long_request(200, 100);
        r.n_choices = state.n_choices;
        ASSERT_TRUE(rig.e->submit(r));
        for (int i = 0; i < state.steps_before; ++i) rig.step();
        if (state.paused) {
            rig.e->pause(r.id);
            rig.step();
        }
        rig.e->cancel(r.id);
        rig.step();
        for (uint32_t choice = 0; choice < state.n_choices; ++choice) EXPECT_EQ(rig.answer(r.id, choice).finish, FinishReason::cancelled) << state.name;
        if (state.behind_another) {
            EXPECT_EQ(rig.e->stats().running, before.running) << state.name;
            EXPECT_EQ(rig.e->stats().waiting, 0u) << state.name;
            rig.e->cancel(blocker);
            rig.step();
        }
        EXPECT_TRUE(rig.is_empty()) << state.name;
        rig.e->cancel(r.id);  // once more, for nobody
        EXPECT_FALSE(rig.step());
    }
}

TEST(Overload, AThousandCancelsAtRandomMomentsLeaveTheLedgerEmpty) {
    Rig rig(config(8, 64), pool(40));
    std::mt19937_64 random(5);
    std::vector<RequestId> open;
    uint32_t cancelled = 0;
    while (cancelled < 1'000) {
        if (random() % 2 == 0) {
            Request r = rig.long_request(1 + static_cast<uint32_t>(random() % 200), 1 + static_cast<uint32_t>(random() % 60), static_cast<uint32_t>(random() % 9));
            r.n_choices = random() % 5 == 0 ? 3 : 1;
            if (rig.e->submit(r).ok()) open.push_back(r.id);
        }
        if (!open.empty() && random() % 3 == 0) {
            const size_t at = random() % open.size();
            rig.e->cancel(open[at]);
            rig.step();
            bool was_cancelled = false;
            for (uint32_t c = 0; c < 3; ++c) was_cancelled |= rig.answer(open[at], c).finish == FinishReason::cancelled;
            cancelled += was_cancelled;  // else it had finished by itself
            open.erase(open.begin() + static_cast<ptrdiff_t>(at));
        }
        rig.step();
    }
    for (const RequestId id : open) rig.e->cancel(id);
    rig.step();
    EXPECT_TRUE(rig.is_empty());
    EXPECT_GE(rig.e->stats().finished_cancelled, 1'000u);
}

// trtllm#9628: "no free slots" now and then at the batch cap.
TEST(Overload, SlotsAreConservedAtTheBatchCapUnderAborts) {
    Rig rig(config(3, 4), pool(64));
    std::mt19937_64 random(6);
    for (int i = 0; i < 3'000; ++i) {
        Request r = rig.request("hello", 1 + static_cast<uint32_t>(random() % 6));
        r.n_choices = 1 + static_cast<uint32_t>(random() % 3);
        (void)rig.e->submit(std::move(r));
        if (random() % 3 == 0) rig.e->cancel(1 + random() % rig.next_id);
        rig.step();
        ASSERT_LE(rig.e->stats().running, 3u);
    }
    ASSERT_TRUE(rig.finish_all());
    EXPECT_TRUE(rig.is_empty());
    Request all = rig.request("all slots", 2);
    all.n_choices = 3;
    ASSERT_TRUE(rig.e->submit(all));
    rig.step();
    EXPECT_EQ(rig.e->stats().running, 3u);
}

// vllm#20302: an implausible KV gauge.
TEST(Overload, GaugesAreTheLedger) {
    Rig rig(config(8), pool(32));
    ASSERT_TRUE(rig.e->submit(rig.long_request(130, 63, 1)));  // 192 positions: 3 blocks at once
    ASSERT_TRUE(rig.e->submit(rig.long_request(65, 200, 2)));  // 264: 5 blocks, 2 at once
    rig.step();
    EngineStats s = rig.e->stats();
    EXPECT_EQ(s.kv_blocks_total, 32u);
    EXPECT_EQ(s.kv_blocks_pinned, 3u + 2u);
    EXPECT_EQ(s.kv_blocks_reserved, 0u + 3u);
    EXPECT_EQ(s.running, 2u);
    ASSERT_TRUE(rig.finish_all());
    s = rig.e->stats();
    EXPECT_EQ(s.kv_blocks_pinned + s.kv_blocks_reserved, 0u);
    EXPECT_EQ(s.kv_blocks_cached, 3u + 4u);  // full blocks of 192 and 264 positions
    EXPECT_EQ(s.prompt_tokens, 195u);
    EXPECT_EQ(s.generated_tokens, 263u);
}

// vllm#11893, L#29175, L#10054: running streams stall while a huge prompt is computed.
TEST(Overload, AHugePromptStretchesAStreamsGapsByOneChunkAtMost) {
    support::FakeModelConfig m = pool(300, 17'000);
    m.step_ns = 1'000'000;
    m.row_ns = 100'000;
    EngineConfig c = config(8);
    c.step_tokens_max = 64;
    c.prefill_chunk_max = 48;
    Rig rig(c, m);
    Request victim = rig.request("victim", 500);
    ASSERT_TRUE(rig.e->submit(victim));
    for (int i = 0; i < 20; ++i) rig.step();
    ASSERT_TRUE(rig.e->submit(rig.long_request(16'000, 10, 1)));
    ASSERT_TRUE(rig.e->submit(rig.long_request(200, 10, 2)));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(victim.id).tokens.size(), 500u);
    EXPECT_GT(rig.e->stats().mixed_steps, 300u);
    const Histogram& itl = rig.e->metrics().itl_s;
    for (size_t i = 0; i <= itl.bounds().size(); ++i) {  // 1 ms and 64 rows: 7.4 ms
        if (i == itl.bounds().size() || itl.bounds()[i] > 0.008) {
            EXPECT_EQ(itl.bucket(i), 0u);
        }
    }
    EXPECT_LE(rig.fake->seen().rows_max, 64u);
    EXPECT_LE(rig.fake->seen().rows_of_a_sequence_max, 48u);
}

// vllm#10774: a short request after a long one.
TEST(Overload, AShortRequestAfterALongOneFinishesFirst) {
    EngineConfig c = config(8);
    c.step_tokens_max = 64;
    c.prefill_chunk_max = 64;
    Rig rig(c, pool(128, 8'000));
    Request big = rig.long_request(6'000, 5, 1), small = rig.long_request(60, 5, 2);
    ASSERT_TRUE(rig.e->submit(big));
    for (int i = 0; i < 3; ++i) rig.step();
    ASSERT_TRUE(rig.e->submit(small));
    for (int i = 0; i < 7; ++i) rig.step();
    EXPECT_EQ(rig.answer(small.id).finish, FinishReason::length);
    EXPECT_EQ(rig.answer(big.id).tokens.size(), 0u);
    ASSERT_TRUE(rig.finish_all());
}
