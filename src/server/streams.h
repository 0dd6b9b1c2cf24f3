// Live answers by request id. The engine wakes the loop once a step; Streams then hands its events to the stream of
// each request. A stream whose reader is behind pauses its sequences. Loop thread only, except waker().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine.h"

namespace server {

// What one event said, as an owned value. `choice` counts over all prompts of the HTTP request.
struct Piece {
    uint32_t choice = 0;
    uint32_t prompt = 0;         // which prompt of the HTTP request
    engine::TokenId token = -1;  // -1: only text, or only the end
    std::string text;
    float logprob = 0.0f;
    std::vector<engine::TokenLogprob> top;
    engine::FinishReason finish_reason = engine::FinishReason::none;
    engine::Usage usage;  // set with finish_reason
};

class Streams;

// The answer to one HTTP request: one engine request a prompt. Its destructor cancels what has not ended.
class Stream {
  public:
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Gives the requests to the engine, in order; ids are filled in here. On a refusal those before it are cancelled.
    base::Result<void> submit(std::vector<engine::Request> requests);
    // Until there is something to take, the stream has ended, or `at_most_ms` have passed (none: no bound). true: not that last.
    boost::asio::awaitable<bool> wait(std::optional<int64_t> at_most_ms = std::nullopt);
    std::vector<Piece> take();  // in order; may be empty
    // Nothing more will come (what take() has not given yet is still there).
    bool ended() const { return error_.has_value() || open_requests_ == 0; }
    // Why it ended early; set by abort(), by an engine error and when the server cut it.
    const std::optional<base::Error>& error() const { return error_; }
    // Cancels in the engine and ends with this error.
    void abort(base::Error error);

  private:
    friend class Streams;
    explicit Stream(Streams& owner);
    void deliver(const engine::Event& event, uint32_t prompt, uint32_t choice_base);
    void close();
    void set_paused(bool paused);

    struct Part {
        engine::RequestId id = 0;
        bool open = false;
    };

    Streams& owner_;
    boost::asio::steady_timer timer_;  // expires never; cancelled to wake the reader
    std::vector<Part> parts_;
    uint32_t open_requests_ = 0;
    std::vector<Piece> pieces_;
    size_t pieces_bytes_ = 0;  // what pieces_ will take as SSE, roughly
    bool paused_ = false;
    std::optional<base::Error> error_;
};

class Streams {
  public:
    // The executor's thread is the loop.
    explicit Streams(boost::asio::io_context::executor_type executor);

    // Before the first open(); outlives every stream.
    void set_engine(engine::Engine& engine) { engine_ = &engine; }
    // For Engine::create: posts one drain to the loop, and allocates nothing. Any thread; valid as long as Streams is.
    std::function<void()> waker();
    std::unique_ptr<Stream> open();

    // Ends every live stream with this error.
    void abort_all(const base::Error& error);
    size_t live_count() const { return live_.size(); }
    size_t paused_count() const { return paused_count_; }

    // Hands out all events that are there.
    void drain();

  private:
    friend class Stream;
    struct Route {
        Stream* stream = nullptr;
        uint32_t prompt = 0;
        uint32_t choice_base = 0;
    };

    struct Wake;
    template <typename T>
    struct WakeAllocator;

    boost::asio::io_context::executor_type executor_;
    engine::Engine* engine_ = nullptr;
    engine::RequestId next_id_ = 1;
    std::unordered_map<engine::RequestId, Route> routes_;
    std::vector<Stream*> live_;
    size_t paused_count_ = 0;
    std::shared_ptr<Wake> wake_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace server
