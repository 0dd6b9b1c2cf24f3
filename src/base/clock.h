// The clock is a seam: the engine and the server never ask the system for the time themselves.
#pragma once

#include <cstdint>

namespace base {

class Clock {
  public:
    virtual ~Clock() = default;
    // Monotonic nanoseconds from an arbitrary origin; every deadline and latency uses this. Any thread.
    virtual int64_t now_ns() const = 0;
    // Seconds since 1970, for stamps in answers and logs only. Any thread.
    virtual int64_t wall_unix_s() const = 0;
};

// The machine's clocks (CLOCK_MONOTONIC, CLOCK_REALTIME). Lives for ever.
const Clock& system_clock();

}  // namespace base
