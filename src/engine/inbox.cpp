#include "engine/inbox.h"

#include <bit>

#include "base/check.h"

namespace engine {

Inbox::Inbox(uint32_t queue_max, uint32_t sequences_max, uint32_t blocks_total, size_t state_bytes_max)
    : queue_max_(queue_max),
      // Waiting, running, and as many again that have arrived while the step in progress was not yet accounted for.
      live_max_(queue_max + 2 * sequences_max),
      state_bytes_max_(state_bytes_max),
      live_(std::bit_ceil(size_t{2} * live_max_ + 2)),
      slots_free_(sequences_max),
      blocks_free_(blocks_total) {}

Inbox::~Inbox() {
    for (const Slot& slot : live_) delete slot.request;
}

size_t Inbox::find(RequestId id) const {
    size_t i = home(id);
    while (live_[i].request != nullptr && live_[i].id != id) i = (i + 1) & (live_.size() - 1);
    return i;
}

void Inbox::wake() {
    signalled_ = true;
    changed_.notify_one();
}

bool Inbox::hold(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (held_bytes_ > 0 && (bytes > state_bytes_max_ || held_bytes_ > state_bytes_max_ - bytes)) return false;
    held_bytes_ += bytes;
    return true;
}

void Inbox::release(size_t bytes) {
    const std::lock_guard lock(mutex_);
    CHECK_LE(bytes, held_bytes_);
    held_bytes_ -= bytes;
}

Inbox::Push Inbox::push(std::unique_ptr<RequestState> request) {
    const size_t held_bytes = request->held_bytes;
    const Push result = try_push(request);
    if (result != Push::accepted) release(held_bytes);
    return result;
}

Inbox::Push Inbox::try_push(std::unique_ptr<RequestState>& request) {
    const std::lock_guard lock(mutex_);
    Slot& slot = live_[find(request->request.id)];
    if (slot.request != nullptr) return Push::duplicate;
    const auto n_choices = static_cast<uint32_t>(request->choices.size());
    const bool admitted_next = engine_waiting_ == 0 && arrived_waiting_ == 0 && arrived_slots_ + n_choices <= slots_free_ &&
                               arrived_blocks_ + request->blocks_total() <= blocks_free_;
    if (n_live_.load(std::memory_order_relaxed) >= live_max_) return Push::crowded;
    if (admitted_next) {
        arrived_slots_ += n_choices;
        arrived_blocks_ += request->blocks_total();
    } else {
        if (engine_waiting_ + arrived_waiting_ >= queue_max_) return Push::full;
        arrived_waiting_ += 1;
        request->counted_waiting = true;
        n_waiting_.store(engine_waiting_ + arrived_waiting_, std::memory_order_relaxed);
    }
    RequestState* r = request.release();
    slot = {r->request.id, r};
    r->in_inbox = true;
    (arrived_last_ != nullptr ? arrived_last_->inbox_next : arrived_first_) = r;
    arrived_last_ = r;
    n_live_.fetch_add(1, std::memory_order_relaxed);
    wake();
    return Push::accepted;
}

void Inbox::flag(RequestId id, Flag flag) {
    const std::lock_guard lock(mutex_);
    RequestState* r = live_[find(id)].request;
    if (r == nullptr) return;
    if (flag == Flag::cancel) {
        r->cancel_wanted = true;
    } else {
        r->pause_wanted = flag == Flag::pause;
    }
    if (!r->is_flagged) {
        r->is_flagged = true;
        r->flagged_next = flagged_;
        flagged_ = r;
    }
    wake();
}

void Inbox::signal() {
    const std::lock_guard lock(mutex_);
    wake();
}

void Inbox::stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
}

Inbox::Drained Inbox::drain() {
    const std::lock_guard lock(mutex_);
    Drained drained{arrived_first_, nullptr};
    uint32_t n_arrived_waiting = 0;
    for (RequestState* r = arrived_first_; r != nullptr; r = r->inbox_next) {
        r->in_inbox = false;
        n_arrived_waiting += r->counted_waiting;
    }
    // Copied into the engine's own fields: another thread may flag the same request again at any moment.
    for (RequestState* r = flagged_; r != nullptr; r = r->flagged_next) {
        r->is_flagged = false;
        r->cancelled = r->cancel_wanted;
        r->paused = r->pause_wanted;
        r->taken_next = drained.flagged;
        drained.flagged = r;
    }
    arrived_first_ = arrived_last_ = flagged_ = nullptr;
    CHECK_EQ(n_arrived_waiting, arrived_waiting_);
    // They are the engine's now, and what they were estimated to take is taken until it says otherwise.
    engine_waiting_ += arrived_waiting_;
    arrived_waiting_ = 0;
    CHECK(arrived_slots_ <= slots_free_ && arrived_blocks_ <= blocks_free_);
    slots_free_ -= arrived_slots_;
    blocks_free_ -= arrived_blocks_;
    arrived_slots_ = arrived_blocks_ = 0;
    signalled_ = false;
    return drained;
}

void Inbox::account(uint32_t slots_free, uint32_t blocks_free, uint32_t n_waiting) {
    const std::lock_guard lock(mutex_);
    slots_free_ = slots_free;
    blocks_free_ = blocks_free;
    engine_waiting_ = n_waiting;
    n_waiting_.store(engine_waiting_ + arrived_waiting_, std::memory_order_relaxed);
}

void Inbox::erase(RequestState& request) {
    {
        const std::lock_guard lock(mutex_);
        CHECK(!request.in_inbox);
        if (request.is_flagged) {
            RequestState** link = &flagged_;
            while (*link != &request) link = &(*link)->flagged_next;
            *link = request.flagged_next;
        }
        size_t i = find(request.request.id);
        CHECK(live_[i].request == &request);
        // Deletion without tombstones: move back what would no longer be found.
        for (size_t j = (i + 1) & (live_.size() - 1); live_[j].request != nullptr; j = (j + 1) & (live_.size() - 1)) {
            const size_t distance_home = (j - home(live_[j].id)) & (live_.size() - 1);
            const size_t distance_hole = (j - i) & (live_.size() - 1);
            if (distance_home >= distance_hole) {
                live_[i] = live_[j];
                i = j;
            }
        }
        live_[i] = {};
        CHECK_LE(request.held_bytes, held_bytes_);
        held_bytes_ -= request.held_bytes;
        n_live_.fetch_sub(1, std::memory_order_relaxed);
    }
    delete &request;
}

void Inbox::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return signalled_ || stopped_; });
}

}  // namespace engine
