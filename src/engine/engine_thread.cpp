#include "engine/engine_thread.h"

#include <pthread.h>

#include "base/check.h"

namespace engine {

void EngineThread::start() {
    CHECK(!thread_.joinable());
    thread_ = std::thread([this] {
        pthread_setname_np(pthread_self(), "engine");  // for top, gdb, and the test that stops it
        while (!stopping_.load(std::memory_order_relaxed)) {
            if (!engine_.step()) engine_.wait_for_work();
        }
    });
}

void EngineThread::stop() {
    stopping_.store(true, std::memory_order_relaxed);
    engine_.stop_waiting();
    if (thread_.joinable()) thread_.join();
}

bool is_stuck(const Engine& engine, int64_t now_ns, int64_t limit_ns) {
    const int64_t since_ns = engine.stats().busy_since_ns;
    return since_ns > 0 && now_ns - since_ns > limit_ns;
}

}  // namespace engine
