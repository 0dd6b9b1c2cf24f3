// The pool: every chunk once, whoever is late; sleepers wake; an idle pool takes no CPU; modes of every thread.
#include "kernels/cpu/pool.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace {

using kernels::cpu::FloatMode;
using kernels::cpu::Pool;

double cpu_seconds() {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

TEST(Pool, EveryChunkRunsOnceBeforeRunReturns) {
    for (uint32_t threads : {1u, 2u, 3u, 5u, 9u}) {
        Pool pool(threads);
        std::vector<std::atomic<uint32_t>> seen(300);
        for (uint32_t job = 0; job < 2000; ++job) {
            const uint32_t chunks = job % 300;
            std::atomic<bool> thread_in_range{true};
            pool.run(chunks, [&](uint32_t chunk, uint32_t thread) {
                if (thread >= threads) thread_in_range = false;
                seen[chunk].fetch_add(1);
            });
            ASSERT_TRUE(thread_in_range);
            for (uint32_t i = 0; i < chunks; ++i) ASSERT_EQ(seen[i].exchange(0), 1u) << "threads " << threads << " job " << job << " chunk " << i;
            for (uint32_t i = chunks; i < seen.size(); ++i) ASSERT_EQ(seen[i].load(), 0u);
        }
    }
}

// Chunks of one thread never overlap: a thread's scratch is its own.
TEST(Pool, AThreadNumberIsUsedByOneThreadAtATime) {
    Pool pool(4);
    std::vector<std::atomic<int>> busy(4);
    std::atomic<bool> clash{false};
    for (int job = 0; job < 300; ++job)
        pool.run(40, [&](uint32_t chunk, uint32_t thread) {
            if (busy[thread].fetch_add(1) != 0) clash = true;
            for (uint32_t i = 0; i < chunk; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
            std::this_thread::yield();
            busy[thread].fetch_sub(1);
        });
    EXPECT_FALSE(clash);
}

TEST(Pool, SleepersWakeForTheNextJob) {
    Pool pool(3);
    for (int round = 0; round < 20; ++round) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));  // far beyond the spin
        std::atomic<uint32_t> sum{0};
        if (round % 2) pool.wake();
        pool.run(64, [&](uint32_t chunk, uint32_t) { sum.fetch_add(chunk); });
        ASSERT_EQ(sum.load(), 63u * 64 / 2);
    }
}

TEST(Pool, WorkIsShared) {
    Pool pool(2);
    std::vector<std::atomic<uint32_t>> done(2);
    // Each chunk waits a little, so that both threads must take part to finish in time; who takes how many is not fixed.
    for (int job = 0; job < 50 && (done[0] == 0 || done[1] == 0); ++job)
        pool.run(16, [&](uint32_t, uint32_t thread) {
            done[thread].fetch_add(1);
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        });
    EXPECT_GT(done[0].load(), 0u);
    EXPECT_GT(done[1].load(), 0u);
}

TEST(Pool, AnIdlePoolTakesNoCpu) {
    Pool pool(4);
    pool.run(64, [](uint32_t, uint32_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double before = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_LT(cpu_seconds() - before, 0.004);  // 1 % of one core
}

TEST(Pool, EveryThreadFlushesDenormals) {
    Pool pool(3);
    const FloatMode mode;  // the caller's, as a step sets it
    std::atomic<uint32_t> kept{0};
    std::vector<std::atomic<uint32_t>> took_part(3);
    for (int job = 0; job < 20; ++job)
        pool.run(30, [&](uint32_t, uint32_t thread) {
            volatile float tiny = 1e-38f;  // normal; a tenth of it is not
            volatile float product = tiny * 0.1f;
            if (product != 0.0f) kept.fetch_add(1);
            took_part[thread].fetch_add(1);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        });
    EXPECT_EQ(kept.load(), 0u);
    EXPECT_GT(took_part[1].load() + took_part[2].load(), 0u);
}

TEST(FloatMode, IsRestored) {
    volatile float tiny = 1e-38f;
    volatile float outside = tiny * 0.1f;
    {
        const FloatMode mode;
        volatile float inside = tiny * 0.1f;
        EXPECT_EQ(inside, 0.0f);
    }
    volatile float after = tiny * 0.1f;
    EXPECT_EQ(outside, after);
    EXPECT_GT(after, 0.0f);
}

}  // namespace
