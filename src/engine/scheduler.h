// Which sequence computes how many tokens in a step. Three verbs: submit, schedule, update.
//
// A step knows no phases: every running sequence has tokens that are not computed yet, one when it decodes, more when
// its prompt is new, and gets a number of them. Decode rows come first; what is left of the step's rows is shared
// evenly among the prompts in progress, so that a long one does not hold up the short ones beside it.
//
// Admission is first come, first served by the ledger (kv_ring.h): a request is admitted when everything it may ever
// need fits. One that does not fit may be passed by later ones that do, at most limits::bypass_requests times and for
// limits::bypass_time_ms; then what is freed is kept for it.
//
// One thread. Allocates nothing after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_ring.h"
#include "engine/sequence.h"
#include "model/batch.h"

namespace engine {

struct SchedulerConfig {
    uint32_t sequences_max = limits::sequences_running;
    uint32_t step_tokens_max = limits::step_tokens;  // >= sequences_max
    uint32_t prefill_chunk_max = 256;
    uint32_t events_per_token = 1;                   // events that one token of one choice may need at most
    bool prefix_cache = true;
};

struct Scheduled {
    Sequence* sequence = nullptr;
    uint32_t n_rows = 0;
    bool samples = false;  // its last row is the sequence's newest token: that row's logits give the next one
};

struct Step {
    model::Batch batch;                      // views into the scheduler, valid until the next schedule()
    std::span<const Scheduled> scheduled;    // one for each of batch.sequences
    uint32_t n_decode_rows = 0, n_prefill_rows = 0;
    bool lacks_event_room = false;           // some sequence was left out, or cut short, for that reason
};

// What became of one choice in a step. A row that samples gives one for its sequence; the row that ends a prompt gives
// one for each choice of its request.
struct Sampled {
    Sequence* sequence = nullptr;
    TokenId token = -1;  // -1: none (the row was bad; `ends` is true)
    bool ends = false;
};

class Scheduler {
  public:
    Scheduler(const SchedulerConfig& config, KvRing& ring);

    // --- the three verbs ---
    // Puts a request at the end of the queue; it must fit the whole ring. The caller owns it, until n_open == 0.
    void submit(RequestState& request);
    // Admits what fits, then decides the step. event_room: events that may be written in this step.
    const Step& schedule(int64_t now_ns, uint32_t event_room);
    // The step has been computed: notes it, appends tokens, lets further choices join, ends what ends.
    void update(std::span<const Sampled> sampled);

    // Takes a request out in whatever state it is; its blocks and reservations are free at once.
    void cancel(RequestState& request);

    uint32_t n_running() const { return static_cast<uint32_t>(running_.size()); }   // sequences, joining ones included
    uint32_t n_waiting() const { return n_waiting_; }                               // requests
    uint32_t slots_free() const { return config_.sequences_max - n_running(); }
    uint64_t bypasses() const { return bypasses_; }
    std::span<Sequence* const> running() const { return running_; }

    // Every invariant between sequences and ring; aborts with values on a breach.
    void check_integrity() const;

  private:
    void admit_waiting(int64_t now_ns);
    bool try_admit(RequestState& request);
    bool count_bypass(const RequestState& passing);  // false: one of those passed may not be passed again
    void leave_queue(RequestState& request);
    static bool takes_part(const Sequence& s) { return s.state == SequenceState::running && !s.request->paused; }
    void grant_event_room(uint32_t event_room);
    void add_decode_rows();
    void add_prefill_rows();
    void add_rows(Sequence& sequence, uint32_t n_rows, bool samples);
    void register_full_blocks(Sequence& sequence);
    void join(Sequence& sequence);
    void end(Sequence& sequence);

    const SchedulerConfig config_;
    KvRing& ring_;

    // The waiting queue: doubly linked through RequestState, oldest first.
    RequestState* first_waiting_ = nullptr;
    RequestState* last_waiting_ = nullptr;
    uint32_t n_waiting_ = 0;
    std::vector<Sequence*> running_;            // in order of admission; capacity sequences_max
    uint64_t bypasses_ = 0;
    uint32_t turn_ = 0;                         // whose turn it is first when event room is short

    // The step being built.
    Step step_;
    std::vector<TokenId> tokens_;               // (step_tokens_max)
    std::vector<model::SequenceSlice> slices_;  // (sequences_max)
    std::vector<Scheduled> scheduled_;          // (sequences_max)
    std::vector<uint32_t> logit_rows_;          // (sequences_max)
    std::vector<BlockIndex> hits_;              // scratch of try_admit
    struct Share {
        Sequence* sequence;
        uint32_t wanted, given;
    };
    std::vector<Share> shares_;                 // scratch of add_prefill_rows
};

}  // namespace engine
