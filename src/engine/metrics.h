// What the engine measures, for /metrics to print: plain structs of relaxed atomics, no names and no format.
// One writer (the engine's thread), any reader; a reader sees each number whole, and different numbers at slightly
// different moments.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace engine {

// Counts of values by upper bound, as Prometheus has them but not cumulative: bucket i counts values in
// (bounds[i - 1], bounds[i]], bucket bounds.size() those above the last bound.
class Histogram {
  public:
    static constexpr size_t bounds_max = 40;

    // bounds: ascending, static storage. Values and bounds have the same unit: seconds or tokens.
    constexpr explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {}

    void observe(double value) {
        const auto bucket = static_cast<size_t>(std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin());
        buckets_[bucket].store(buckets_[bucket].load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        sum_.store(sum_.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
    }

    std::span<const double> bounds() const { return bounds_; }
    uint64_t bucket(size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }  // i in [0, bounds().size()]
    uint64_t count() const {
        uint64_t n = 0;
        for (size_t i = 0; i <= bounds_.size(); ++i) n += bucket(i);
        return n;
    }
    double sum() const { return sum_.load(std::memory_order_relaxed); }

  private:
    std::span<const double> bounds_;
    std::array<std::atomic<uint64_t>, bounds_max + 1> buckets_{};
    std::atomic<double> sum_{0.0};
};

// vLLM's boundaries are a subset of each, so that its dashboards work; finer below, where a small model lives.
inline constexpr double ttft_bounds_s[] = {.001, .0025, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560};
inline constexpr double itl_bounds_s[] = {.001, .002, .003, .004, .006, .008, .01, .015, .02, .025, .03, .035, .04, .05, .06, .075, .1, .15,
                                          .2,   .3,   .4,   .5,   .75,  1,    2.5, 5,    7.5, 10,   20,  40,   80};
inline constexpr double request_bounds_s[] = {.005, .01, .025, .05, .1, .2, .3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680};
inline constexpr double token_bounds[] = {1,     2,     5,     10,     20,     50,     100,     200,     500,     1'000,
                                          2'000, 5'000, 10'000, 20'000, 50'000, 100'000, 200'000, 500'000, 1'000'000};
inline constexpr double step_row_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1'024, 2'048, 4'096, 8'192, 16'384};
static_assert(std::max({std::size(ttft_bounds_s), std::size(itl_bounds_s), std::size(request_bounds_s), std::size(token_bounds),
                        std::size(step_row_bounds)}) <= Histogram::bounds_max);

struct EngineMetrics {
    Histogram ttft_s{ttft_bounds_s};                    // arrival -> first token; one value a request
    Histogram itl_s{itl_bounds_s};                      // between two tokens of a choice; every gap
    Histogram queue_s{request_bounds_s};                // submit -> first rows in a step; one a request that got there
    Histogram prefill_s{request_bounds_s};              // first rows -> first token; one a request
    Histogram decode_s{request_bounds_s};               // first -> last token; one a choice
    Histogram e2e_s{request_bounds_s};                  // arrival -> end; one a request, however it ended
    Histogram step_s{itl_bounds_s};                     // duration of a step with rows
    Histogram step_rows{step_row_bounds};               // its rows
    Histogram prompt_tokens{token_bounds};              // one a request that got its first token
    Histogram generation_tokens{token_bounds};          // one a choice
    Histogram max_tokens{token_bounds};                 // as asked for; one an accepted request
    std::atomic<uint64_t> refused_queue_full{0}, refused_context{0}, refused_draining{0};  // any thread
    std::atomic<uint64_t> bypasses{0};                  // admissions past a request that waited for blocks
    std::atomic<uint64_t> event_room_waits{0};          // steps in which a sequence waited for room in the event ring
};

}  // namespace engine
