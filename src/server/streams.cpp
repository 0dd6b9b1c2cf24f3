#include "server/streams.h"

#include <algorithm>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/limits.h"

namespace server {
namespace {

// A chunk's JSON around its text, and one logprob entry without its token's text, in bytes: measured on chunks of chat
// answers, rounded up. A byte of text is six at most (\u0001); in an entry it also stands as a number ("bytes").
constexpr size_t chunk_overhead_bytes = 320, logprob_bytes = 160, escaped_bytes = 6;

size_t sse_bytes(const Piece& piece) {
    const size_t entries = piece.token >= 0 ? piece.top.size() + 1 : 0;
    return chunk_overhead_bytes + escaped_bytes * piece.text.size() + logprob_bytes * entries;
}

}  // namespace

// The engine's thread posts from outside the loop, where Asio takes the memory of a handler from the heap; a decode step
// allocates nothing, so the one wake-up that can be on its way has its memory here. Asio gives it back before it calls.
struct Streams::Wake {
    std::atomic<bool> posted{false};
    bool taken = false;  // follows `posted`: whoever sets that takes, whoever runs has given back
    alignas(std::max_align_t) std::byte memory[256];
};

template <typename T>
struct Streams::WakeAllocator {
    using value_type = T;
    explicit WakeAllocator(Wake* w) : wake(w) {}
    template <typename U>
    WakeAllocator(const WakeAllocator<U>& other) : wake(other.wake) {}
    T* allocate(size_t n) {
        CHECK(!wake->taken);
        CHECK_LE(n * sizeof(T), sizeof wake->memory);
        wake->taken = true;
        return reinterpret_cast<T*>(wake->memory);
    }
    void deallocate(T*, size_t) { wake->taken = false; }
    template <typename U>
    bool operator==(const WakeAllocator<U>& other) const { return wake == other.wake; }
    Wake* wake;
};

Stream::Stream(Streams& owner) : owner_(owner), timer_(owner.executor_, boost::asio::steady_timer::time_point::max()) {
    owner_.live_.push_back(this);
}

Stream::~Stream() {
    close();
    set_paused(false);
    std::erase(owner_.live_, this);
}

base::Result<void> Stream::submit(std::vector<engine::Request> requests) {
    CHECK(owner_.engine_ && parts_.empty());
    uint32_t choice_base = 0;
    for (engine::Request& request : requests) {
        const engine::RequestId id = owner_.next_id_++;
        const uint32_t n_choices = request.n_choices;
        request.id = id;
        // Routed first: the engine may be done with it before submit() returns.
        owner_.routes_[id] = {this, static_cast<uint32_t>(parts_.size()), choice_base};
        parts_.push_back({id, true});
        ++open_requests_;
        if (base::Result<void> accepted = owner_.engine_->submit(std::move(request)); !accepted) {
            owner_.routes_.erase(id);
            parts_.back().open = false;
            --open_requests_;
            close();
            return accepted;
        }
        choice_base += n_choices;
    }
    return {};
}

boost::asio::awaitable<bool> Stream::wait(std::optional<int64_t> at_most_ms) {
    const auto ready = [this] { return !pieces_.empty() || ended(); };
    if (ready()) co_return true;
    if (at_most_ms) timer_.expires_after(std::chrono::milliseconds(*at_most_ms));
    else timer_.expires_at(boost::asio::steady_timer::time_point::max());
    boost::system::error_code ignored;
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    co_return ready();
}

std::vector<Piece> Stream::take() {
    pieces_bytes_ = 0;
    set_paused(false);
    return std::exchange(pieces_, {});
}

void Stream::deliver(const engine::Event& event, uint32_t prompt, uint32_t choice_base) {
    Piece piece;
    piece.choice = choice_base + event.choice;
    piece.prompt = prompt;
    piece.token = event.token;
    piece.text = event.text_view();
    piece.logprob = event.logprob;
    piece.top.assign(event.top.begin(), event.top.begin() + event.n_top);
    piece.finish_reason = event.finish_reason;
    piece.usage = event.usage;
    if (event.finish_reason == engine::FinishReason::error && !error_)
        error_ = base::Error{base::ErrorCode::internal, "the model failed on this request (logits that are no numbers)", ""};
    if (event.finish_reason == engine::FinishReason::cancelled && !error_)
        error_ = base::Error{base::ErrorCode::unavailable, "the request was cancelled by the server", ""};
    pieces_bytes_ += sse_bytes(piece);
    pieces_.push_back(std::move(piece));
    if (event.finish_reason != engine::FinishReason::none && event.last_choice) {
        parts_[prompt].open = false;
        --open_requests_;
    }
    if (error_)
        close();
    else if (pieces_bytes_ > limits::stream_buffer_bytes)
        set_paused(true);
    timer_.cancel();
}

void Stream::abort(base::Error error) {
    if (!error_) error_ = std::move(error);
    close();
    timer_.cancel();
}

// Forgets the ids; the engine drops their events unread.
void Stream::close() {
    for (Part& part : parts_) {
        if (!part.open) continue;
        part.open = false;
        --open_requests_;
        owner_.routes_.erase(part.id);
        owner_.engine_->cancel(part.id);
    }
}

void Stream::set_paused(bool paused) {
    if (paused == paused_) return;
    paused_ = paused;
    owner_.paused_count_ += paused ? 1 : -1;
    for (const Part& part : parts_) {
        if (!part.open) continue;
        if (paused)
            owner_.engine_->pause(part.id);
        else
            owner_.engine_->resume(part.id);
    }
}

Streams::Streams(boost::asio::io_context::executor_type executor) : executor_(executor), wake_(std::make_shared<Wake>()) {}

std::function<void()> Streams::waker() {
    return [this, executor = executor_, wake = wake_, alive = std::weak_ptr<bool>(alive_)] {
        if (wake->posted.exchange(true)) return;  // one is on its way and will see these events too
        boost::asio::post(executor, boost::asio::bind_allocator(WakeAllocator<void>(wake.get()), [this, wake, alive] {
            wake->posted.store(false);  // before reading: an event added now posts anew
            if (!alive.expired()) drain();
        }));
    };
}

std::unique_ptr<Stream> Streams::open() { return std::unique_ptr<Stream>(new Stream(*this)); }

void Streams::abort_all(const base::Error& error) {
    for (Stream* stream : live_) stream->abort(error);
}

void Streams::drain() {
    if (!engine_) return;
    engine::Event event;
    // At most one ring's worth at a time: sockets get their turn even when the engine is faster.
    for (uint32_t i = 0; i < limits::event_ring_entries; ++i) {
        if (!engine_->pop_event(event)) return;
        const auto found = routes_.find(event.id);
        if (found == routes_.end()) continue;  // its client has left
        const Route route = found->second;
        if (event.finish_reason != engine::FinishReason::none && event.last_choice) routes_.erase(found);
        // What one stream can't take ends that stream; the others' events go on.
        try {
            route.stream->deliver(event, route.prompt, route.choice_base);
        } catch (const std::exception&) { route.stream->abort({base::ErrorCode::unavailable, "no memory for this answer", ""}); }
    }
    waker()();
}

}  // namespace server
