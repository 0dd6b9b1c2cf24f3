// Events on their way from the engine's thread to one reader: a ring of fixed-size records, allocated once.
// The writer fills slots in place and publishes all of a step at once; free() is exact for the writer (it can only
// grow meanwhile), so the scheduler leaves out a sequence whose events would not fit.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "engine/event.h"

namespace engine {

class EventRing {
  public:
    explicit EventRing(uint32_t entries) : slots_(std::bit_ceil(entries)), entries_(entries) { CHECK(entries > 0); }

    uint32_t capacity() const { return entries_; }

    // --- writer ---
    uint32_t free() const { return entries_ - static_cast<uint32_t>(written_ - taken_.load(std::memory_order_seq_cst)); }
    // The next slot, with its text and top list not cleared; CHECKs that there is one.
    Event& next() {
        CHECK(free() > 0);
        return slots_[written_++ & (slots_.size() - 1)];
    }
    // Shows the reader all slots taken since; false when there were none.
    bool publish() {
        if (written_ == published_.load(std::memory_order_relaxed)) return false;
        published_.store(written_, std::memory_order_release);
        return true;
    }

    uint64_t taken() const { return taken_.load(std::memory_order_seq_cst); }  // by the reader, since the beginning

    // --- reader ---
    bool pop(Event& out) {
        const uint64_t at = taken_.load(std::memory_order_relaxed);
        if (at == published_.load(std::memory_order_acquire)) return false;
        out = slots_[at & (slots_.size() - 1)];
        taken_.store(at + 1, std::memory_order_seq_cst);  // seq_cst: see Engine::pop_event
        return true;
    }

  private:
    std::vector<Event> slots_;
    const uint32_t entries_;
    uint64_t written_ = 0;                        // writer's own; [published_, written_) are being filled
    alignas(64) std::atomic<uint64_t> published_{0};
    alignas(64) std::atomic<uint64_t> taken_{0};  // [taken_, published_) wait for the reader
};

// Writes the events of one token, or of one end, continuing into further events when the text is long. Never splits
// a UTF-8 sequence between two of them.
class EventWriter {
  public:
    EventWriter(EventRing& ring, RequestId id, uint32_t choice) : ring_(ring), id_(id), choice_(choice) { open(); }

    Event& event() { return *event_; }  // the newest one
    void text(std::string_view text) {
        while (!text.empty()) {
            size_t n = std::min(text.size(), event_->text.size() - event_->text_bytes);
            while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80) --n;
            if (n == 0) {
                open();
                continue;
            }
            std::copy_n(text.data(), n, event_->text.data() + event_->text_bytes);
            event_->text_bytes = static_cast<uint16_t>(event_->text_bytes + n);
            text.remove_prefix(n);
        }
    }

    // Events that one token may need at most, when a token has at most token_bytes: each bad byte becomes three of
    // U+FFFD, held-back text and 3 bytes of an unfinished character may come with it, and up to 3 bytes at the end of
    // an event stay unused.
    static constexpr uint32_t events_max(size_t token_bytes) {
        const size_t text_bytes = 3 * (token_bytes + 4) + limits::stop_string_bytes;
        return static_cast<uint32_t>(text_bytes / (limits::event_text_bytes - 3)) + 1;
    }

  private:
    void open() {
        event_ = &ring_.next();
        event_->id = id_;
        event_->choice = choice_;
        event_->token = -1;
        event_->finish_reason = FinishReason::none;
        event_->last_choice = false;
        event_->stop_index = -1;
        event_->text_bytes = 0;
        event_->n_top = 0;
        event_->logprob = 0.0f;
        event_->usage = {};
    }

    EventRing& ring_;
    const RequestId id_;
    const uint32_t choice_;
    Event* event_ = nullptr;
};

}  // namespace engine
