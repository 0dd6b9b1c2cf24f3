// A clock that moves when the test says so.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace support {

class FakeClock final : public base::Clock {
  public:
    int64_t now_ns() const override { return now_ns_.load(std::memory_order_relaxed); }
    int64_t wall_unix_s() const override { return 1'700'000'000 + now_ns() / 1'000'000'000; }
    void advance_ns(int64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }
    void advance_ms(int64_t ms) { advance_ns(ms * 1'000'000); }

  private:
    std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace support
