// The engine: everything about tokens, nothing about sockets, JSON or HTTP.
// step() is public and single-threaded: drain the inbox, schedule, forward, sample, update, deliver. EngineThread
// (engine_thread.h) is only a loop around it; tests call it by hand with a fake model and a fake clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "engine/event.h"
#include "engine/metrics.h"
#include "engine/request.h"
#include "model/batch.h"
#include "text/tokenizer.h"

namespace engine {

struct EngineConfig {
    uint32_t context_length = 0;                              // tokens of one sequence at most; <= the model's
    uint32_t sequences_max = limits::sequences_running;       // running at once
    uint32_t step_tokens_max = limits::step_tokens;           // rows of a step
    uint32_t prefill_chunk_max = 256;                         // rows of one prompt in a step
    uint32_t queue_requests_max = 64;                         // waiting requests; one more is refused
    uint32_t event_ring_entries = limits::event_ring_entries;
    bool prefix_cache = true;
};

// A snapshot for /metrics, /health and the page; relaxed atomics, any thread.
struct EngineStats {
    uint32_t running = 0, waiting = 0;
    uint32_t kv_blocks_total = 0, kv_blocks_pinned = 0, kv_blocks_reserved = 0, kv_blocks_cached = 0;
    uint64_t steps = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
    uint64_t mixed_steps = 0;                                 // steps with prefill and decode rows
    uint64_t prefill_rows = 0, decode_rows = 0;
    // Requests, each counted once: error if any choice ended so, else cancelled, else length, else stop.
    uint64_t finished_stop = 0, finished_length = 0, finished_cancelled = 0, finished_error = 0;
    int64_t last_step_ns = 0;                                 // clock at the end of the last step
    int64_t busy_since_ns = 0;                                // clock at the last sign of life of the step in progress, 0 between
                                                              // steps: what a watchdog must look at
    int64_t last_step_duration_ns = 0;
};

class Engine {
  public:
    // All references outlive the engine. `wake` is called by step(), at most once, when events were added.
    static std::unique_ptr<Engine> create(const EngineConfig& config, model::ForwardPass& model, const text::Tokenizer& tokenizer,
                                          const base::Clock& clock, std::function<void()> wake);
    virtual ~Engine() = default;

    // --- any thread ---
    // Refuses at once: context_length_exceeded (prompt + max_tokens over the context, or over the whole KV budget;
    // both numbers in the message), queue_full, unavailable (draining, no memory), invalid_argument (a value outside its
    // range, by field), internal (an id in use). Accepted: events will follow, ending with finish_reason on every choice.
    virtual base::Result<void> submit(Request request) = 0;
    virtual void cancel(RequestId id) = 0;                    // within one step; unknown ids are ignored
    // A client that doesn't read: its sequences take no part in steps until resumed (their KV stays reserved).
    virtual void pause(RequestId id) = 0;
    virtual void resume(RequestId id) = 0;
    virtual void start_draining() = 0;                        // submit refuses from now on; what was admitted or waits goes on
    virtual EngineStats stats() const = 0;
    virtual const EngineMetrics& metrics() const = 0;         // lives as long as the engine
    virtual bool has_work() const = 0;                        // inbox, waiting or running not empty
    // Seconds a refused client should wait, from the measured rate at which requests finish; [1, 60].
    virtual uint32_t retry_after_s() const = 0;

    // --- engine thread ---
    virtual bool step() = 0;                                  // false when there was nothing to do
    // Blocks the caller until there is work or `stop_waiting` was called.
    virtual void wait_for_work() = 0;
    virtual void stop_waiting() = 0;                          // any thread
    // Every ledger invariant; aborts with values on a breach. Cheap enough to run after each step in tests.
    virtual void check_integrity() const = 0;

    // --- reader of events: one thread ---
    virtual bool pop_event(Event& out) = 0;                   // false when empty
};

}  // namespace engine
