// The engine's wake-up of the loop, as the engine's thread calls it: it allocates nothing, and none is lost.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "server/streams.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/fake_engine.h"

namespace {

TEST(Waker, AllocatesNothingOnTheEnginesThread) {
    boost::asio::io_context io;
    server::Streams streams(io.get_executor());
    support::FakeEngine engine;
    streams.set_engine(engine);
    const std::function<void()> wake = streams.waker();
    std::thread elsewhere([&] {
        for (int i = 0; i < 100; ++i) {
            EXPECT_EQ(support::allocations_of([&] {
                          wake();
                          wake();  // one is on its way already
                      }),
                      0u)
                << i;
            io.restart();
            EXPECT_EQ(io.run(), 1u) << i;  // one handler for both
        }
    });
    elsewhere.join();
}

TEST(Waker, ManyFromAnotherThreadWhileTheLoopRuns) {
    boost::asio::io_context io;
    auto work = boost::asio::make_work_guard(io);
    server::Streams streams(io.get_executor());
    support::FakeEngine engine;
    streams.set_engine(engine);
    const std::function<void()> wake = streams.waker();
    std::thread elsewhere([&] {
        for (int i = 0; i < 100'000; ++i) wake();
        work.reset();
    });
    io.run();
    elsewhere.join();
}

}  // namespace
