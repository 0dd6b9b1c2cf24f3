// The engine's thread: a loop around step() that sleeps while there is nothing to do. Nothing else.
#pragma once

#include <atomic>
#include <thread>

#include "engine/engine.h"

namespace engine {

class EngineThread {
  public:
    explicit EngineThread(Engine& engine) : engine_(engine) {}
    ~EngineThread() { stop(); }
    EngineThread(const EngineThread&) = delete;
    EngineThread& operator=(const EngineThread&) = delete;

    void start();
    // Ends the loop after the step in progress and joins. Final: the engine's wait_for_work() returns at once from then
    // on. What is not finished stays as it is; cancel it before, or call step() by hand after.
    void stop();

  private:
    Engine& engine_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

// For a watchdog: the step in progress gave no sign of life for limit_ns; a long prefill that goes on layer by layer does. An engine that waits for work, for paused
// clients or for event room is not stuck. Any thread.
bool is_stuck(const Engine& engine, int64_t now_ns, int64_t limit_ns);

}  // namespace engine
