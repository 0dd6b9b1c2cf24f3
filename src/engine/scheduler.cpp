#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace engine {

Scheduler::Scheduler(const SchedulerConfig& config, KvRing& ring) : config_(config), ring_(ring) {
    CHECK(config.sequences_max > 0 && config.prefill_chunk_max > 0);
    CHECK_GE(config.step_tokens_max, config.sequences_max);
    running_.reserve(config.sequences_max);
    tokens_.reserve(config.step_tokens_max);
    slices_.reserve(config.sequences_max);
    scheduled_.reserve(config.sequences_max);
    logit_rows_.reserve(config.sequences_max);
    shares_.reserve(config.sequences_max);
    hits_.resize(ring.total());
}

// --- the queue -------------------------------------------------------------------------------------------------------

void Scheduler::submit(RequestState& request) {
    CHECK(!request.choices.empty() && request.choices.size() <= config_.sequences_max);
    CHECK_LE(request.blocks_total(), ring_.total());
    CHECK(!request.is_waiting);
    request.n_open = static_cast<uint32_t>(request.choices.size());
    request.is_waiting = true;
    request.prev = last_waiting_;
    request.next = nullptr;
    (last_waiting_ != nullptr ? last_waiting_->next : first_waiting_) = &request;
    last_waiting_ = &request;
    n_waiting_ += 1;
}

void Scheduler::leave_queue(RequestState& request) {
    CHECK(request.is_waiting);
    (request.prev != nullptr ? request.prev->next : first_waiting_) = request.next;
    (request.next != nullptr ? request.next->prev : last_waiting_) = request.prev;
    request.prev = request.next = nullptr;
    request.is_waiting = false;
    n_waiting_ -= 1;
}

void Scheduler::admit_waiting(int64_t now_ns) {
    uint32_t n_blocked = 0;
    for (RequestState* r = first_waiting_; r != nullptr;) {
        RequestState& request = *r;
        r = request.next;
        if (try_admit(request)) {
            const bool may_go_on = n_blocked == 0 || count_bypass(request);
            leave_queue(request);
            if (!may_go_on) return;
        } else {
            if (request.blocked_since_ns < 0) request.blocked_since_ns = now_ns;
            const bool has_waited_enough = now_ns - request.blocked_since_ns >= limits::bypass_time_ms * 1'000'000;
            if (has_waited_enough || request.times_passed >= limits::bypass_requests) return;
            if (++n_blocked >= limits::bypass_scan) return;
        }
    }
}

bool Scheduler::count_bypass(const RequestState& passing) {
    bypasses_ += 1;
    bool may_go_on = true;
    for (RequestState* ahead = first_waiting_; ahead != &passing; ahead = ahead->next) {
        ahead->times_passed += 1;
        may_go_on = may_go_on && ahead->times_passed < limits::bypass_requests;
    }
    return may_go_on;
}

bool Scheduler::try_admit(RequestState& request) {
    if (request.choices.size() > slots_free()) return false;
    const uint32_t blocks = request.blocks_total();
    // The most that hits on pinned blocks could save, before anything is looked up.
    const uint32_t savings_max = std::min(ring_.pinned(), (request.n_prompt - 1) / block_tokens);
    if (blocks - savings_max > ring_.available()) return false;

    Sequence& first = request.choices.front();
    PrefixHit hit;
    if (config_.prefix_cache && request.request.cache_prompt) hit = ring_.match(first.tokens, request.request.cache_salt, hits_);
    if (!ring_.fits(KvRing::cost(blocks, hit))) return false;

    const std::span<const BlockIndex> hits(hits_.data(), hit.n_blocks);
    ring_.admit(blocks, hits);
    first.block_table.assign(hits.begin(), hits.end());  // within its capacity
    first.reserved_blocks = request.blocks_first - hit.n_blocks;
    first.n_computed = hit.n_blocks * block_tokens;
    first.n_registered = hit.n_blocks;
    first.prefix_id = hit.prefix_id;
    request.n_cached = first.n_computed;
    for (Sequence& sequence : request.choices) {
        sequence.state = &sequence == &first ? SequenceState::running : SequenceState::joining;
        if (&sequence != &first) sequence.reserved_blocks = request.blocks_further;
        running_.push_back(&sequence);
    }
    return true;
}

// --- the step --------------------------------------------------------------------------------------------------------

// A sequence may only produce a token when the events of that token have room. Granted in turn, decoding or not, so
// that a reader that is slow all the time serves all.
void Scheduler::grant_event_room(uint32_t event_room) {
    for (uint32_t i = 0; i < n_running(); ++i) {
        Sequence& sequence = *running_[(turn_ + i) % n_running()];
        sequence.may_sample = false;
        if (!takes_part(sequence) || sequence.n_uncomputed() > config_.prefill_chunk_max) continue;
        // The row that ends a prompt gives a first token to every choice of its request.
        const bool ends_prompt = sequence.choice == 0 && sequence.n_generated() == 0;
        const uint32_t needed = config_.events_per_token * (ends_prompt ? static_cast<uint32_t>(sequence.request->choices.size()) : 1);
        if (needed > event_room) continue;
        event_room -= needed;
        sequence.may_sample = true;
    }
}

const Step& Scheduler::schedule(int64_t now_ns, uint32_t event_room) {
    admit_waiting(now_ns);
    step_ = {};
    tokens_.clear();
    slices_.clear();
    scheduled_.clear();
    logit_rows_.clear();
    if (!running_.empty()) {
        turn_ %= n_running();
        grant_event_room(event_room);
        add_decode_rows();
        add_prefill_rows();
        if (step_.lacks_event_room) turn_ += 1;
    }
    step_.batch = {tokens_, slices_, logit_rows_};
    step_.scheduled = scheduled_;
    return step_;
}

void Scheduler::add_decode_rows() {
    for (uint32_t i = 0; i < n_running(); ++i) {
        Sequence& sequence = *running_[(turn_ + i) % n_running()];
        if (!takes_part(sequence) || !sequence.is_decoding()) continue;
        if (!sequence.may_sample) {
            step_.lacks_event_room = true;
            continue;
        }
        add_rows(sequence, 1, true);
        step_.n_decode_rows += 1;
    }
}

void Scheduler::add_prefill_rows() {
    shares_.clear();
    for (uint32_t i = 0; i < n_running(); ++i) {
        Sequence& sequence = *running_[(turn_ + i) % n_running()];
        if (!takes_part(sequence) || sequence.is_decoding()) continue;
        shares_.push_back({&sequence, std::min(sequence.n_uncomputed(), config_.prefill_chunk_max), 0});
    }
    // Even shares; what a short prompt leaves over is shared again among the longer ones. Ends: every round but the
    // last satisfies somebody or uses up all rows.
    auto rows_left = static_cast<uint32_t>(config_.step_tokens_max - tokens_.size());
    for (auto unsatisfied = static_cast<uint32_t>(shares_.size()); rows_left > 0 && unsatisfied > 0;) {
        const uint32_t share = std::max(rows_left / unsatisfied, 1u);
        unsatisfied = 0;
        for (Share& s : shares_) {
            const uint32_t n = std::min({s.wanted - s.given, share, rows_left});
            s.given += n;
            rows_left -= n;
            unsatisfied += s.given < s.wanted;
        }
    }
    for (const Share& s : shares_) {
        uint32_t n_rows = s.given;
        bool samples = n_rows == s.sequence->n_uncomputed();
        if (samples && !s.sequence->may_sample) {
            step_.lacks_event_room = true;
            n_rows -= 1;  // the prompt but for its last token needs no event
            samples = false;
        }
        if (n_rows == 0) continue;
        add_rows(*s.sequence, n_rows, samples);
        step_.n_prefill_rows += n_rows;
    }
}

void Scheduler::add_rows(Sequence& sequence, uint32_t n_rows, bool samples) {
    const uint32_t end = sequence.n_computed + n_rows;
    while (sequence.block_table.size() < blocks_for(end)) {
        CHECK(sequence.reserved_blocks > 0);
        CHECK_LT(sequence.block_table.size(), sequence.block_table.capacity());
        sequence.reserved_blocks -= 1;
        sequence.block_table.push_back(ring_.allocate());
    }
    const auto first_row = static_cast<uint32_t>(tokens_.size());
    tokens_.insert(tokens_.end(), sequence.tokens.begin() + sequence.n_computed, sequence.tokens.begin() + end);
    slices_.push_back({first_row, n_rows, sequence.n_computed, sequence.block_table});
    scheduled_.push_back({&sequence, n_rows, samples});
    if (samples) logit_rows_.push_back(first_row + n_rows - 1);
}

void Scheduler::update(std::span<const Sampled> sampled) {
    for (const Scheduled& s : scheduled_) {
        s.sequence->n_computed += s.n_rows;
        register_full_blocks(*s.sequence);
    }
    for (const Sampled& s : sampled) {
        if (s.token >= 0) {
            CHECK_LT(s.sequence->tokens.size(), s.sequence->tokens.capacity());
            s.sequence->tokens.push_back(s.token);
        }
        if (s.sequence->state == SequenceState::joining && !s.ends) join(*s.sequence);
    }
    // Only now, since a further choice joins on the blocks of the first, which may have ended with its first token.
    for (const Sampled& s : sampled) {
        if (s.ends) end(*s.sequence);
    }
    scheduled_.clear();
}

void Scheduler::register_full_blocks(Sequence& sequence) {
    const RequestState& request = *sequence.request;
    if (!config_.prefix_cache || !request.request.cache_prompt) return;
    for (; (sequence.n_registered + 1) * block_tokens <= sequence.n_computed; ++sequence.n_registered) {
        const std::span<const TokenId> tokens(sequence.tokens.data() + size_t{sequence.n_registered} * block_tokens, block_tokens);
        sequence.prefix_id =
            ring_.register_block(sequence.block_table[sequence.n_registered], sequence.prefix_id, tokens, request.request.cache_salt);
    }
}

// A further choice begins: it holds the full blocks of the prompt together with the first one, and computes the rest
// of the prompt (less than a block) once more in blocks of its own.
void Scheduler::join(Sequence& sequence) {
    const Sequence& first = sequence.request->choices.front();
    const uint32_t n_shared = first.n_prompt / block_tokens;
    CHECK_GE(first.n_computed, first.n_prompt);
    for (uint32_t i = 0; i < n_shared; ++i) {
        ring_.share(first.block_table[i]);
        sequence.block_table.push_back(first.block_table[i]);
    }
    sequence.n_computed = n_shared * block_tokens;
    sequence.n_registered = first.n_registered;  // at this moment exactly the shared ones, or none without the cache
    sequence.prefix_id = first.prefix_id;
    sequence.state = SequenceState::running;
}

void Scheduler::end(Sequence& sequence) {
    RequestState& request = *sequence.request;
    CHECK(sequence.state == SequenceState::running || sequence.state == SequenceState::joining);
    ring_.release(sequence.block_table, sequence.reserved_blocks);
    sequence.block_table.clear();
    sequence.reserved_blocks = 0;
    sequence.state = SequenceState::ended;
    running_.erase(std::ranges::find(running_, &sequence));
    request.n_open -= 1;
}

void Scheduler::cancel(RequestState& request) {
    if (request.is_waiting) {
        leave_queue(request);
        for (Sequence& sequence : request.choices) sequence.state = SequenceState::ended;
        request.n_open = 0;
        return;
    }
    for (Sequence& sequence : request.choices) {
        if (sequence.state != SequenceState::ended) end(sequence);
    }
}

// --- integrity -------------------------------------------------------------------------------------------------------

void Scheduler::check_integrity() const {
    ring_.check_integrity();
    std::vector<uint32_t> refs(ring_.total(), 0);
    uint64_t reserved = 0;
    CHECK_LE(running_.size(), size_t{config_.sequences_max});
    for (const Sequence* s : running_) {
        const RequestState& request = *s->request;
        CHECK(s->state == SequenceState::running || s->state == SequenceState::joining);
        CHECK(!request.is_waiting && request.n_open > 0);
        reserved += s->reserved_blocks;
        for (const BlockIndex b : s->block_table) {
            CHECK_LT(b, ring_.total());
            refs[b] += 1;
        }
        const auto n_tokens_max = uint64_t{s->n_prompt} + request.request.max_tokens;
        CHECK_LE(s->tokens.size(), n_tokens_max);
        CHECK_LE(s->block_table.size() + s->reserved_blocks, size_t{blocks_for(n_tokens_max)});
        if (s->state == SequenceState::joining) {
            CHECK(s->block_table.empty() && s->n_computed == 0);
            continue;
        }
        CHECK(s->n_uncomputed() > 0);
        CHECK_GE(s->block_table.size(), size_t{blocks_for(s->n_computed)});
        if (scheduled_.empty()) CHECK_EQ(s->block_table.size(), size_t{blocks_for(s->n_computed)});  // else a step is in progress
        // What it holds and may still take covers every position that will ever be computed: all but the last token.
        CHECK_GE(s->block_table.size() + s->reserved_blocks, size_t{blocks_for(n_tokens_max - 1)});
        CHECK_LE(s->n_registered * block_tokens, s->n_computed);
    }
    CHECK_EQ(reserved, uint64_t{ring_.reserved()});
    for (BlockIndex b = 0; b < ring_.total(); ++b) CHECK_EQ(refs[b], ring_.ref_count(b));

    uint32_t n_waiting = 0;
    for (const RequestState *r = first_waiting_, *before = nullptr; r != nullptr; before = r, r = r->next) {
        CHECK(r->prev == before && r->is_waiting);
        CHECK_LE(r->times_passed, limits::bypass_requests);
        for (const Sequence& s : r->choices) CHECK(s.state == SequenceState::waiting && s.block_table.empty() && s.reserved_blocks == 0);
        CHECK_LE(++n_waiting, n_waiting_);
    }
    CHECK_EQ(n_waiting, n_waiting_);
}

}  // namespace engine
