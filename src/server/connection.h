// One client connection: bytes in, gate, checks, handler, bytes out. Two coroutines on the loop thread share a Connection:
// the reader moves bytes from the socket into a bounded buffer, also while a handler works, so that a client
// that leaves is noticed in every state; the session takes requests out of the buffer, one at a time, in order.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/clock.h"
#include "server/cors.h"
#include "server/gate.h"
#include "server/host_check.h"
#include "server/http.h"
#include "server/http_options.h"
#include "server/transport.h"

namespace server {

class Connection;

// Counted on the loop thread.
struct HttpStats {
    uint64_t connections_made_room = 0;  // closed at the cap while they waited for a request
    uint64_t connections_accepted = 0;
    uint64_t connections_over_cap = 0;
    uint64_t accept_failures = 0;
    uint64_t requests = 0;      // handed to the handler
    uint64_t refusals = 0;      // answered before the handler: gate, Host, Origin, key, size, time
    uint64_t clients_gone = 0;  // left while their request was handled
    uint64_t writes_stalled = 0;
};

// What all connections of a server share; outlives each of them.
class HttpShared {
  public:
    HttpShared(HttpOptions options_in, Handler handler_in, const base::Clock& clock_in, const boost::asio::ip::address& bound);

    const HttpOptions options;
    const Handler handler;
    const base::Clock& clock;
    const HostCheck host_check;
    const Cors cors;
    bool draining = false;  // answers are followed by a close
    std::unordered_set<Connection*> connections;
    HttpStats stats;
    uint64_t waits = 0;       // see Connection::wait_number
    size_t bodies_bytes = 0;  // held by the requests in progress, see BodyHold
    std::string new_request_id();

  private:
    uint64_t id_state_;
};

// One request's share of the memory that all bodies may take, from before its first byte is read until its answer has ended:
// what is made of a body (its JSON, its tokens) lives as long. Loop thread.
class BodyHold {
  public:
    explicit BodyHold(HttpShared& shared) : shared_(shared) {}
    BodyHold(const BodyHold&) = delete;
    BodyHold& operator=(const BodyHold&) = delete;
    ~BodyHold() { shared_.bodies_bytes -= held_bytes_; }
    // Makes it `bytes` in all. false: the others hold too much, and nothing changes.
    bool grow_to(size_t bytes);

  private:
    HttpShared& shared_;
    size_t held_bytes_ = 0;
};

// Whether a client's X-Request-Id is echoed and logged as it is: 1 to 128 of [A-Za-z0-9._~:/+=@-].
bool clean_request_id(std::string_view id);

class Connection final : public std::enable_shared_from_this<Connection> {
  public:
    Connection(std::shared_ptr<HttpShared> shared, std::unique_ptr<Transport> transport, boost::asio::any_io_executor executor);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    // Spawns both coroutines; they keep the connection alive until it is closed.
    void start();
    bool busy() const { return phase_ == Phase::head || phase_ == Phase::reading || phase_ == Phase::handling; }
    // Whether nothing is lost by closing it: no whole request head has come since the last answer.
    bool may_make_room() const { return (phase_ == Phase::idle || phase_ == Phase::head) && !broken_; }
    // Grows with each wait for a request: the smallest among those that may make room has waited longest.
    uint64_t wait_number() const { return wait_number_; }
    // Closes now when no request is being read or answered.
    void close_if_idle();
    // Cuts it off in any state; a handler at work sees its client gone.
    void abort();

  private:
    class Answer;
    enum class Phase { idle, head, reading, handling, closing };
    enum class Input { bytes, ended, timeout };

    boost::asio::awaitable<void> read_loop();
    boost::asio::awaitable<void> supervise();
    boost::asio::awaitable<void> session();
    boost::asio::awaitable<bool> serve_one(int64_t head_deadline_ns);
    boost::asio::awaitable<bool> receive_head(HeadGate& gate, int64_t deadline_ns);
    boost::asio::awaitable<bool> receive_body(const Head& head, BeastParser& parser, BodyHold& hold);
    std::optional<HttpResponse> admit(const Head& head, HttpRequest& request);
    boost::asio::awaitable<void> refuse(HttpResponse response);
    boost::asio::awaitable<void> linger();

    // Waits until the buffer holds more than `have` bytes.
    boost::asio::awaitable<Input> wait_input(size_t have, int64_t deadline_ns);
    int64_t deadline_after(int64_t time_ms) const;
    // false: the peer is gone or took no byte for too long; nothing more can be sent.
    boost::asio::awaitable<bool> write_all(std::string_view first, std::string_view second);
    std::string head_text(const HttpResponse& response, bool keep_alive, bool chunked, std::optional<size_t> length) const;
    std::string_view buffered() const;
    void consume(size_t bytes);
    void peer_gone();

    const std::shared_ptr<HttpShared> shared_;
    const std::unique_ptr<Transport> transport_;
    const boost::asio::any_io_executor executor_;
    boost::asio::steady_timer input_timer_;  // the session waits on it; the reader cancels it
    boost::asio::steady_timer space_timer_;  // the reader waits on it; the session cancels it
    boost::asio::steady_timer write_timer_;
    boost::beast::flat_buffer buffer_;  // received and not yet consumed
    uint64_t write_number_ = 0;
    uint64_t wait_number_ = 0;
    size_t discarded_bytes_ = 0;
    Phase phase_ = Phase::idle;
    bool ended_ = false;   // the reader got its last byte: end of stream or an error
    bool broken_ = false;  // sending is over
    bool discarding_ = false;
    Answer* answer_ = nullptr;  // of the request being handled
    // Of the request being answered, for the common headers.
    std::string request_id_;
    std::string origin_;
    bool answer_begun_ = false;
    bool answer_complete_ = false;  // and out, to its end
    bool head_only_ = false;  // HEAD: a refusal has no body either
};

}  // namespace server
