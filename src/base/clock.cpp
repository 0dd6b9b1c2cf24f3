#include "base/clock.h"

#include <ctime>

namespace base {
namespace {

class SystemClock final : public Clock {
  public:
    int64_t now_ns() const override {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    }
    int64_t wall_unix_s() const override {
        timespec t{};
        clock_gettime(CLOCK_REALTIME, &t);
        return t.tv_sec;
    }
};

}  // namespace

const Clock& system_clock() {
    static const SystemClock clock;
    return clock;
}

}  // namespace base
