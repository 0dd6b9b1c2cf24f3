// The engine behind engine.h: a step is drain, schedule, forward, sample, update, deliver; the parts do the work.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/event_ring.h"
#include "engine/inbox.h"
#include "engine/kv_ring.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace engine {

class EngineImpl final : public Engine {
  public:
    EngineImpl(const EngineConfig& config, model::ForwardPass& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
               std::function<void()> wake);

    base::Result<void> submit(Request request) override;
    void cancel(RequestId id) override { inbox_.flag(id, Inbox::Flag::cancel); }
    void pause(RequestId id) override { inbox_.flag(id, Inbox::Flag::pause); }
    void resume(RequestId id) override { inbox_.flag(id, Inbox::Flag::resume); }
    void start_draining() override { draining_.store(true, std::memory_order_relaxed); }
    EngineStats stats() const override;
    const EngineMetrics& metrics() const override { return metrics_; }
    bool has_work() const override { return inbox_.n_live() > 0; }
    uint32_t retry_after_s() const override;

    bool step() override;
    void wait_for_work() override;
    void stop_waiting() override { inbox_.stop(); }
    void check_integrity() const override;
    bool pop_event(Event& out) override;

  private:
    // Stats in the form that other threads may read.
    struct Board {
        std::atomic<uint32_t> running{0}, pinned{0}, reserved{0}, cached{0};
        std::atomic<uint64_t> steps{0}, prompt_tokens{0}, cached_tokens{0}, generated_tokens{0}, mixed_steps{0}, prefill_rows{0}, decode_rows{0};
        std::array<std::atomic<uint64_t>, 5> finished{};  // by FinishReason
        std::atomic<int64_t> last_step_ns{0}, busy_since_ns{0}, last_step_duration_ns{0};
        std::atomic<int64_t> finishes_begin_ns{-1};       // of the window that finishes_count covers; -1: none yet
        std::atomic<uint32_t> finishes_count{0};
    };

    base::Result<void> check_request(const Request& request) const;
    std::unique_ptr<RequestState> make_state(Request request) const;

    // --- engine's thread ---
    bool take_commands();
    void run(const Step& step);
    void take_row(Sequence& sequence, std::span<const float> logits, int64_t now_ns);
    void take_token(Sequence& sequence, std::span<const float> logits, TokenId token, int64_t now_ns);
    void finish(Sequence& sequence, Event& event, FinishReason reason, uint32_t n_generated, int64_t now_ns);
    bool report_cancelled(RequestState& request);  // false: no room in the event ring
    bool report_owed();
    void close(RequestState& request, int64_t now_ns);
    void count_finish(int64_t now_ns);
    void account();

    const EngineConfig config_;
    model::ForwardPass& model_;
    const text::Tokenizer& tokenizer_;
    const base::Clock& clock_;
    const std::function<void()> wake_;
    std::atomic<bool> draining_{false};

    KvRing ring_;
    const uint32_t events_per_token_;
    Scheduler scheduler_;
    Sampler sampler_;
    EventRing events_;
    Inbox inbox_;

    std::vector<Sampled> sampled_;      // of the step in progress; capacity sequences_max
    RequestState* owed_ = nullptr;      // cancelled, not yet reported for lack of event room
    // The reader drains the event ring while a sequence waits for room in it: then it must wake the engine.
    std::atomic<bool> lacks_event_room_{false};
    uint64_t taken_when_lacking_ = 0;   // events taken from the ring before the step that lacked room
    bool lacks_room_ = false;           // the last step did
    std::vector<RequestState*> done_;   // all their choices were reported in the step in progress

    struct FinishWindow {
        static constexpr size_t size = 32;
        std::array<int64_t, size> times_ns{};  // of the last finishes
        uint64_t count = 0;
    } finishes_;
    Board board_;
    EngineMetrics metrics_;
};

}  // namespace engine
