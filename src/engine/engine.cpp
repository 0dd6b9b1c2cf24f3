#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/check.h"
#include "engine/engine_impl.h"

namespace engine {

namespace {

// The longest text that one token can have (control tokens show none).
size_t token_bytes_max(const text::Tokenizer& tokenizer) {
    size_t most = 0;
    for (uint32_t id = 0; id < tokenizer.n_vocab(); ++id) {
        const auto token = static_cast<TokenId>(id);
        if (tokenizer.token_kind(token) != text::TokenKind::control) most = std::max(most, tokenizer.token_bytes(token).size());
    }
    return most;
}

static_assert(EventWriter::events_max(limits::vocab_token_bytes) * limits::choices_count <= limits::event_ring_entries,
              "the first tokens of all choices of one request always fit an empty event ring");

uint64_t random_seed() {
    std::random_device device;
    return uint64_t{device()} << 32 ^ device();
}

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }  // 30 ms is the bound 0.03, not a bit above

template <typename T>
void add(std::atomic<T>& counter, T n) {  // one writer
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

std::unique_ptr<Engine> Engine::create(const EngineConfig& config, model::ForwardPass& model, const text::Tokenizer& tokenizer,
                                       const base::Clock& clock, std::function<void()> wake) {
    return std::make_unique<EngineImpl>(config, model, tokenizer, clock, std::move(wake));
}

EngineImpl::EngineImpl(const EngineConfig& config, model::ForwardPass& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
                       std::function<void()> wake)
    : config_(config),
      model_(model),
      tokenizer_(tokenizer),
      clock_(clock),
      wake_(std::move(wake)),
      ring_(model.kv_blocks_count(), random_seed()),
      events_per_token_(EventWriter::events_max(token_bytes_max(tokenizer))),
      scheduler_({config.sequences_max, config.step_tokens_max, config.prefill_chunk_max, events_per_token_, config.prefix_cache}, ring_),
      sampler_(model.n_vocab()),
      events_(config.event_ring_entries),
      inbox_(config.queue_requests_max, config.sequences_max, model.kv_blocks_count()) {
    model_.set_clock(clock_);
    CHECK(config.context_length > 0);
    CHECK_LE(config.context_length, model.context_length());
    CHECK_LE(events_per_token_ * std::min(limits::choices_count, config.sequences_max), config.event_ring_entries);
    sampled_.reserve(config.sequences_max);
    done_.reserve(config.sequences_max);
}

// --- a step ----------------------------------------------------------------------------------------------------------

bool EngineImpl::step() {
    const int64_t begin_ns = clock_.now_ns();
    board_.busy_since_ns.store(std::max<int64_t>(begin_ns, 1), std::memory_order_relaxed);
    const uint64_t taken = events_.taken();
    bool did_something = report_owed();
    did_something = take_commands() || did_something;
    const Step& step = scheduler_.schedule(begin_ns, events_.free());
    account();  // what has just been admitted waits no more: the queue has room for others while the model computes
    if (!step.scheduled.empty()) {
        run(step);
        did_something = true;
    }
    lacks_room_ = step.lacks_event_room || owed_ != nullptr;
    taken_when_lacking_ = taken;
    lacks_event_room_.store(lacks_room_, std::memory_order_seq_cst);
    if (lacks_room_) add(metrics_.event_room_waits, uint64_t{1});
    if (events_.publish()) {
        did_something = true;
        if (wake_) wake_();
    }
    account();
    const int64_t end_ns = clock_.now_ns();
    board_.last_step_ns.store(end_ns, std::memory_order_relaxed);
    if (did_something) board_.last_step_duration_ns.store(end_ns - begin_ns, std::memory_order_relaxed);
    board_.busy_since_ns.store(0, std::memory_order_relaxed);
    return did_something;
}

bool EngineImpl::take_commands() {
    const Inbox::Drained drained = inbox_.drain();
    for (RequestState* r = drained.arrived; r != nullptr; r = r->inbox_next) {
        metrics_.max_tokens.observe(r->request.max_tokens);
        scheduler_.submit(*r);
    }
    for (RequestState* r = drained.flagged; r != nullptr;) {
        RequestState& request = *r;
        r = request.taken_next;
        if (!request.cancelled || request.is_owed) continue;
        scheduler_.cancel(request);
        if (report_cancelled(request)) continue;
        request.is_owed = true;
        request.owed_next = owed_;
        owed_ = &request;
    }
    return drained.arrived != nullptr || drained.flagged != nullptr;
}

void EngineImpl::run(const Step& step) {
    const int64_t begin_ns = clock_.now_ns();
    for (const Scheduled& s : step.scheduled) {
        RequestState& request = *s.sequence->request;
        if (request.scheduled_ns >= 0) continue;
        request.scheduled_ns = begin_ns;
        metrics_.queue_s.observe(seconds(begin_ns - request.submitted_ns));
    }
    const model::Logits logits = model_.forward(step.batch);
    const int64_t now_ns = clock_.now_ns();
    CHECK_EQ(size_t{logits.n_rows}, step.batch.logit_rows.size());
    CHECK_EQ(logits.n_vocab, model_.n_vocab());

    sampled_.clear();
    done_.clear();
    uint32_t row = 0;
    for (const Scheduled& s : step.scheduled) {
        if (s.samples) take_row(*s.sequence, logits.row(row++), now_ns);
    }
    add(board_.steps, uint64_t{1});
    add(board_.prefill_rows, uint64_t{step.n_prefill_rows});
    add(board_.decode_rows, uint64_t{step.n_decode_rows});
    if (step.n_prefill_rows > 0 && step.n_decode_rows > 0) add(board_.mixed_steps, uint64_t{1});
    metrics_.step_rows.observe(step.n_prefill_rows + step.n_decode_rows);

    scheduler_.update(sampled_);
    for (const Sampled& s : sampled_) {
        if (!s.ends) s.sequence->counts.add(s.sequence->tokens, true);
    }
    for (RequestState* request : done_) close(*request, now_ns);
    metrics_.step_s.observe(seconds(clock_.now_ns() - begin_ns));
}

void EngineImpl::take_row(Sequence& sequence, std::span<const float> logits, int64_t now_ns) {
    RequestState& request = *sequence.request;
    // The row that ends the prompt is the first row of every choice: the prompt is computed once.
    const bool for_all = sequence.choice == 0 && sequence.n_generated() == 0;
    for (Sequence& choice : for_all ? std::span(request.choices) : std::span(&sequence, 1)) {
        SampleInput in;
        in.logits = logits;
        in.params = &request.request.sampling;
        in.counts = &choice.counts;
        if (request.request.ignore_eos || choice.n_generated() < request.request.min_tokens) in.banned = tokenizer_.end_of_generation_ids();
        in.choice = choice.choice;
        in.position = choice.n_generated();
        take_token(choice, logits, sampler_.sample(in), now_ns);
    }
}

void EngineImpl::take_token(Sequence& sequence, std::span<const float> logits, TokenId token, int64_t now_ns) {
    RequestState& r = *sequence.request;
    EventWriter writer(events_, r.request.id, sequence.choice);
    const TextStream::Sink sink{[](void* to, std::string_view text) { static_cast<EventWriter*>(to)->text(text); }, &writer};
    FinishReason reason = FinishReason::none;
    int32_t stop_index = -1;
    uint32_t n_generated = sequence.n_generated();
    if (token < 0 || static_cast<uint32_t>(token) >= tokenizer_.n_vocab()) {
        token = -1;  // a row that is no distribution, or an id that names nothing: an error, never a token
        reason = FinishReason::error;
    } else {
        Event& event = writer.event();
        event.token = token;
        if (r.request.logprobs) {
            event.n_top = static_cast<uint16_t>(std::min(r.request.top_logprobs, model_.n_vocab()));
            event.logprob = sampler_.logprobs(logits, token, std::span(event.top).first(event.n_top));
        }
        n_generated += 1;
        const bool look_for_stops = n_generated > r.request.min_tokens;
        // A token whose text is its name in the template is not text of the answer.
        const bool shows = tokenizer_.token_kind(token) != text::TokenKind::control;
        const bool ends = tokenizer_.is_end_of_generation(token);  // drawn only where it is honoured
        if (!ends && shows) stop_index = sequence.text.push(tokenizer_.token_bytes(token), look_for_stops, r.stops, sink);
        if (ends || stop_index >= 0) {
            reason = FinishReason::stop;
        } else if (n_generated == r.request.max_tokens) {
            reason = FinishReason::length;
        }
        if (reason != FinishReason::none && stop_index < 0) {
            stop_index = sequence.text.finish(look_for_stops, r.stops, sink);
            if (stop_index >= 0) reason = FinishReason::stop;
        }

        if (r.first_token_ns < 0) {
            r.first_token_ns = now_ns;
            metrics_.ttft_s.observe(seconds(now_ns - r.request.arrival_ns));
            metrics_.prefill_s.observe(seconds(now_ns - r.scheduled_ns));
            metrics_.prompt_tokens.observe(r.n_prompt);
            add(board_.prompt_tokens, uint64_t{r.n_prompt});
            add(board_.cached_tokens, uint64_t{r.n_cached});
        }
        if (n_generated > 1) metrics_.itl_s.observe(seconds(now_ns - sequence.last_token_ns));
        sequence.last_token_ns = now_ns;
        add(board_.generated_tokens, uint64_t{1});
    }
    sampled_.push_back({&sequence, token, reason != FinishReason::none});
    if (reason == FinishReason::none) return;
    writer.event().stop_index = stop_index;
    finish(sequence, writer.event(), reason, n_generated, now_ns);
    if (r.n_reported == r.choices.size()) done_.push_back(&r);
}

// --- ends ------------------------------------------------------------------------------------------------------------

void EngineImpl::finish(Sequence& sequence, Event& event, FinishReason reason, uint32_t n_generated, int64_t now_ns) {
    RequestState& r = *sequence.request;
    CHECK(sequence.finish == FinishReason::none);
    sequence.finish = reason;
    r.n_reported += 1;
    r.worst_end = std::max(r.worst_end, reason);
    event.finish_reason = reason;
    event.last_choice = r.n_reported == r.choices.size();
    Usage& usage = event.usage;
    usage.prompt_tokens = r.n_prompt;
    usage.cached_tokens = r.n_cached;
    usage.completion_tokens = n_generated;
    usage.queue_ns = (r.scheduled_ns >= 0 ? r.scheduled_ns : now_ns) - r.submitted_ns;
    if (r.first_token_ns >= 0) {
        usage.prefill_ns = r.first_token_ns - r.scheduled_ns;
        if (n_generated > 0) usage.decode_ns = sequence.last_token_ns - r.first_token_ns;
        metrics_.decode_s.observe(seconds(usage.decode_ns));
        metrics_.generation_tokens.observe(n_generated);
    }
}

bool EngineImpl::report_cancelled(RequestState& request) {
    if (request.choices.size() - request.n_reported > events_.free()) return false;
    const int64_t now_ns = clock_.now_ns();
    for (Sequence& sequence : request.choices) {
        if (sequence.finish != FinishReason::none) continue;
        EventWriter writer(events_, request.request.id, sequence.choice);
        finish(sequence, writer.event(), FinishReason::cancelled, sequence.n_generated(), now_ns);
    }
    close(request, now_ns);
    return true;
}

bool EngineImpl::report_owed() {
    bool reported = false;
    while (owed_ != nullptr) {
        RequestState* const next = owed_->owed_next;
        if (!report_cancelled(*owed_)) break;
        owed_ = next;
        reported = true;
    }
    return reported;
}

void EngineImpl::close(RequestState& request, int64_t now_ns) {
    CHECK_EQ(request.n_open, 0u);
    metrics_.e2e_s.observe(seconds(now_ns - request.request.arrival_ns));
    add(board_.finished[static_cast<size_t>(request.worst_end)], uint64_t{1});
    count_finish(now_ns);
    inbox_.erase(request);
}

void EngineImpl::count_finish(int64_t now_ns) {
    finishes_.times_ns[finishes_.count % FinishWindow::size] = now_ns;
    finishes_.count += 1;
    // The oldest finish in the window opens it and is not counted: n finishes bound n - 1 gaps.
    const uint64_t in_window = std::min<uint64_t>(finishes_.count, FinishWindow::size);
    board_.finishes_begin_ns.store(finishes_.times_ns[(finishes_.count - in_window) % FinishWindow::size], std::memory_order_relaxed);
    board_.finishes_count.store(static_cast<uint32_t>(in_window - 1), std::memory_order_relaxed);
}

uint32_t EngineImpl::retry_after_s() const {
    constexpr double unknown_s = 5.0, most_s = 60.0;
    const uint32_t count = board_.finishes_count.load(std::memory_order_relaxed);
    if (count == 0) return static_cast<uint32_t>(unknown_s);
    // Up to now, so that an engine that has stopped finishing looks as slow as it is.
    const double window_s = seconds(clock_.now_ns() - board_.finishes_begin_ns.load(std::memory_order_relaxed));
    const double wait_s = window_s / count * (inbox_.n_waiting() + 1.0);  // until those that wait have been finished
    return static_cast<uint32_t>(std::clamp(std::ceil(wait_s), 1.0, most_s));
}

// --- for other threads -----------------------------------------------------------------------------------------------

void EngineImpl::account() {
    inbox_.account(scheduler_.slots_free(), ring_.available(), scheduler_.n_waiting());
    board_.running.store(scheduler_.n_running(), std::memory_order_relaxed);
    board_.pinned.store(ring_.pinned(), std::memory_order_relaxed);
    board_.reserved.store(ring_.reserved(), std::memory_order_relaxed);
    board_.cached.store(ring_.cached(), std::memory_order_relaxed);
    metrics_.bypasses.store(scheduler_.bypasses(), std::memory_order_relaxed);
}

EngineStats EngineImpl::stats() const {
    const auto read = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
    const auto finished = [&](FinishReason reason) { return read(board_.finished[static_cast<size_t>(reason)]); };
    EngineStats s;
    s.running = read(board_.running);
    s.waiting = inbox_.n_waiting();
    s.kv_blocks_total = ring_.total();
    s.kv_blocks_pinned = read(board_.pinned);
    s.kv_blocks_reserved = read(board_.reserved);
    s.kv_blocks_cached = read(board_.cached);
    s.steps = read(board_.steps);
    s.prompt_tokens = read(board_.prompt_tokens);
    s.cached_tokens = read(board_.cached_tokens);
    s.generated_tokens = read(board_.generated_tokens);
    s.mixed_steps = read(board_.mixed_steps);
    s.prefill_rows = read(board_.prefill_rows);
    s.decode_rows = read(board_.decode_rows);
    s.finished_stop = finished(FinishReason::stop);
    s.finished_length = finished(FinishReason::length);
    s.finished_cancelled = finished(FinishReason::cancelled);
    s.finished_error = finished(FinishReason::error);
    s.last_step_ns = read(board_.last_step_ns);
    s.busy_since_ns = read(board_.busy_since_ns);
    if (s.busy_since_ns > 0) s.busy_since_ns = std::max(s.busy_since_ns, model_.last_beat_ns());
    s.last_step_duration_ns = read(board_.last_step_duration_ns);
    return s;
}

void EngineImpl::wait_for_work() {
    // The reader may have made room since the step that lacked it, before it could know that it must wake us.
    if (lacks_room_ && events_.taken() != taken_when_lacking_) return;
    inbox_.wait();
}

bool EngineImpl::pop_event(Event& out) {
    if (!events_.pop(out)) return false;
    // Either this load sees what the step stored, or wait_for_work sees that an event was taken: all four accesses are
    // sequentially consistent.
    if (lacks_event_room_.load(std::memory_order_seq_cst)) inbox_.signal();
    return true;
}

void EngineImpl::check_integrity() const {
    scheduler_.check_integrity();
    if (scheduler_.n_running() == 0) {
        CHECK_EQ(ring_.pinned(), 0u);
        CHECK_EQ(ring_.reserved(), 0u);
    }
}

}  // namespace engine
