// The door of the engine: requests and flags (cancel, pause, resume) from any thread, taken by the engine's thread once
// a step. It owns every live request. Bounded by construction: requests are refused beyond the queue's cap, and a flag
// is a mark on a live request, so cancels need no queue of their own and can't be lost.
//
// The cap counts requests that must wait, exactly and whatever the timing: a request that the next step is sure to
// admit (nothing waits, and slots and blocks are free by the last account) does not count.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/limits.h"
#include "base/mix.h"
#include "base/result.h"
#include "engine/sequence.h"

namespace engine {

class Inbox {
  public:
    Inbox(uint32_t queue_max, uint32_t sequences_max, uint32_t blocks_total, size_t state_bytes_max = limits::queue_state_bytes);
    ~Inbox();
    Inbox(const Inbox&) = delete;
    Inbox& operator=(const Inbox&) = delete;

    enum class Push : uint8_t {
        accepted,
        full,       // as many wait as may
        crowded,    // as many live, waiting or not, as may before the step in progress is accounted for
        duplicate,
    };
    enum class Flag : uint8_t { cancel, pause, resume };

    // --- any thread; O(1), allocates nothing ---
    // `bytes` for the state of a request about to be built; false: those that live hold as much as they may. One request
    // alone is never refused. Given back by release(), by a push() that refuses, and by erase().
    bool hold(size_t bytes);
    void release(size_t bytes);
    Push push(std::unique_ptr<RequestState> request);  // on refusal the request is destroyed
    void flag(RequestId id, Flag flag);                // unknown ids are ignored
    void signal();                                     // wakes wait()
    void stop();                                       // wakes wait() now and for ever
    uint32_t n_live() const { return n_live_.load(std::memory_order_relaxed); }        // accepted and not erased
    uint32_t n_waiting() const { return n_waiting_.load(std::memory_order_relaxed); }  // that count for the cap

    // --- the engine's thread ---
    struct Drained {
        RequestState* arrived = nullptr;  // through inbox_next, oldest first
        RequestState* flagged = nullptr;  // through taken_next, oldest first; their `cancelled` and `paused` are as wanted
    };
    Drained drain();
    // What is free after the engine's last decision; n_waiting: requests that it holds and has not admitted.
    void account(uint32_t slots_free, uint32_t blocks_free, uint32_t n_waiting);
    void erase(RequestState& request);  // ended and reported: destroys it
    void wait();                        // until something was pushed, flagged or signalled since the last drain()

  private:
    Push try_push(std::unique_ptr<RequestState>& request);  // takes it when it is accepted
    struct Slot {
        RequestId id = 0;
        RequestState* request = nullptr;  // null: free
    };
    size_t home(RequestId id) const { return (id * base::golden_gamma >> 32) & (live_.size() - 1); }
    size_t find(RequestId id) const;  // its slot, or the free one where it belongs
    void wake();                      // under the mutex

    const uint32_t queue_max_;
    const uint32_t live_max_;
    const size_t state_bytes_max_;

    std::mutex mutex_;
    std::condition_variable changed_;
    // State below is protected by mutex_.
    std::vector<Slot> live_;                                         // open addressing, at most half full
    RequestState *arrived_first_ = nullptr, *arrived_last_ = nullptr;
    RequestState* flagged_ = nullptr;
    uint32_t arrived_waiting_ = 0;                                   // of those that arrived, counted for the cap
    uint32_t arrived_slots_ = 0, arrived_blocks_ = 0;                // taken, by estimate, by the others
    uint32_t slots_free_, blocks_free_;                              // by the last account
    uint32_t engine_waiting_ = 0;
    size_t held_bytes_ = 0;                                          // of the states of live requests and those being built
    bool signalled_ = false, stopped_ = false;
    // Written under mutex_, read by anyone.
    std::atomic<uint32_t> n_live_{0}, n_waiting_{0};
};

}  // namespace engine
