#include "server/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <exception>
#include <limits>

#include "base/message.h"
#include "server/answer.h"

namespace server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// What the reader takes from the socket at a time; also all the memory that an idle connection holds for its input.
constexpr size_t read_chunk_bytes = 4 * limits::kib;

constexpr int64_t ns_per_ms = 1'000'000;

HttpResponse bodies_full() {
    HttpResponse response = error_response(503, "the requests in progress hold as many bytes of bodies as this server takes; try again", "overloaded");
    response.headers.emplace_back("Retry-After", "1");
    return response;
}

}  // namespace

Connection::Connection(std::shared_ptr<HttpShared> shared, std::unique_ptr<Transport> transport, asio::any_io_executor executor)
    : shared_(std::move(shared)),
      transport_(std::move(transport)),
      executor_(std::move(executor)),
      input_timer_(executor_),
      space_timer_(executor_),
      write_timer_(executor_),
      buffer_(shared_->options.limits.read_buffer_bytes) {
    shared_->connections.insert(this);
}

Connection::~Connection() { shared_->connections.erase(this); }

void Connection::start() {
    const auto self = shared_from_this();
    // An exception of the reader (out of memory) ends the connection; the session sees that its input is over.
    asio::co_spawn(executor_, read_loop(), [self](const std::exception_ptr& failure) {
        if (failure) self->abort();
    });
    asio::co_spawn(executor_, supervise(), [self](const std::exception_ptr& failure) {
        if (failure) self->abort();
    });
}

void Connection::close_if_idle() {
    if (phase_ == Phase::idle && buffer_.size() == 0) {
        broken_ = true;
        transport_->close(false);
        input_timer_.cancel();
        space_timer_.cancel();
    }
}

void Connection::abort() {
    broken_ = true;
    ended_ = true;
    transport_->close(true);
    input_timer_.cancel();
    space_timer_.cancel();
    peer_gone();
}

void Connection::peer_gone() {
    if (!answer_ || answer_->client_gone() || answer_->complete()) return;
    ++shared_->stats.clients_gone;
    answer_->set_gone();
}

// --- the reader --------------------------------------------------------------------------------------

asio::awaitable<void> Connection::read_loop() {
    std::array<char, read_chunk_bytes> chunk;
    const size_t capacity = shared_->options.limits.read_buffer_bytes;
    while (!broken_) {
        // A full buffer stops the reader; TCP then stops the client. Its leaving can't be read behind the bytes that wait in the
        // socket, so the socket is asked now and then while a request is at work.
        if (!discarding_ && buffer_.size() >= capacity) {
            error_code ignored;
            space_timer_.expires_after(std::chrono::milliseconds(limits::http_peer_check_ms));
            co_await space_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
            if (phase_ == Phase::handling && transport_->peer_has_ended()) peer_gone();
            continue;
        }
        const size_t wanted = discarding_ ? chunk.size() : std::min(chunk.size(), capacity - buffer_.size());
        const IoResult got = co_await transport_->read_some(asio::buffer(chunk.data(), wanted));
        if (got.error) {
            // Any error but the orderly end means that sending is over too.
            if (got.error != asio::error::eof) broken_ = true;
            break;
        }
        if (discarding_) {
            discarded_bytes_ += got.bytes;
            if (discarded_bytes_ > limits::http_linger_bytes) break;
            continue;
        }
        const auto space = buffer_.prepare(got.bytes);
        std::memcpy(space.data(), chunk.data(), got.bytes);
        buffer_.commit(got.bytes);
        input_timer_.cancel();
    }
    ended_ = true;
    input_timer_.cancel();
    peer_gone();
}

std::string_view Connection::buffered() const {
    const auto data = buffer_.cdata();
    return {static_cast<const char*>(data.data()), data.size()};
}

int64_t Connection::deadline_after(int64_t time_ms) const { return shared_->clock.now_ns() + time_ms * ns_per_ms; }

void Connection::consume(size_t bytes) {
    buffer_.consume(bytes);
    space_timer_.cancel();
}

asio::awaitable<Connection::Input> Connection::wait_input(size_t have, int64_t deadline_ns) {
    for (;;) {
        if (broken_) co_return Input::ended;  // what it still sent is nobody's any more
        if (buffer_.size() > have) co_return Input::bytes;
        if (ended_) co_return Input::ended;
        const int64_t left_ns = deadline_ns - shared_->clock.now_ns();
        if (left_ns <= 0) co_return Input::timeout;
        error_code ignored;
        input_timer_.expires_after(std::chrono::nanoseconds(left_ns));
        co_await input_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

// --- the session -------------------------------------------------------------------------------------

asio::awaitable<void> Connection::supervise() {
    // The one place where what a session or a handler throws is caught.
    std::string failure;
    try {
        co_await session();
    } catch (const std::exception& e) {
        failure = e.what();
        if (failure.empty()) failure = "exception";
    } catch (...) { failure = "unknown exception"; }
    if (!failure.empty()) {
        shared_->options.log("request " + request_id_ + " failed: " + failure);
        if (answer_complete_) {
            // Its client has the whole answer; only the connection ends.
        } else if (answer_begun_) {
            // Part of an answer is out: a cut connection is the only honest end.
            abort();
        } else {
            HttpResponse response = error_response(500, "the server failed while answering this request", "internal_error");
            co_await refuse(std::move(response));
        }
    }
    phase_ = Phase::closing;
    co_await linger();
}

asio::awaitable<void> Connection::session() {
    // The first request has the time of a head from the accept on; later ones may keep the connection waiting.
    int64_t wait_ms = shared_->options.limits.header_time_ms;
    for (bool first = true;; first = false) {
        phase_ = Phase::idle;
        wait_number_ = ++shared_->waits;
        request_id_.clear();
        origin_.clear();
        answer_begun_ = answer_complete_ = false;
        if (buffer_.size() == 0 && buffer_.capacity() > read_chunk_bytes) buffer_.shrink_to_fit();
        if (shared_->draining && !first && buffer_.size() == 0) co_return;
        const Input input = co_await wait_input(0, deadline_after(wait_ms));
        if (input != Input::bytes) co_return;
        phase_ = Phase::head;
        const bool again = co_await serve_one(deadline_after(shared_->options.limits.header_time_ms));
        if (!again) co_return;
        wait_ms = shared_->options.limits.idle_time_ms;
    }
}

// Reads, checks and answers one request. false: the connection is to be closed.
asio::awaitable<bool> Connection::serve_one(int64_t head_deadline_ns) {
    const HttpLimits& limits = shared_->options.limits;
    HeadGate gate(limits);
    const bool received = co_await receive_head(gate, head_deadline_ns);
    if (!received) co_return false;
    phase_ = Phase::reading;

    BeastParser parser;
    parser.header_limit(static_cast<uint32_t>(limits.header_bytes + 1));
    parser.body_limit(limits.body_bytes);
    const size_t head_bytes = gate.head_bytes();
    error_code parse_error;
    const std::string_view raw = buffered().substr(gate.skip_bytes(), head_bytes - gate.skip_bytes());
    const size_t parsed_bytes = parser.put(asio::buffer(raw.data(), raw.size()), parse_error);
    Head head = gate.take_head();
    std::optional<Refusal> fault;
    if (parse_error || parsed_bytes != raw.size() || !parser.is_header_done())
        fault = Refusal{400, "malformed request head (" + parse_error.message() + ")", "malformed_request"};
    else
        fault = check_parsed(head, parser);
    consume(head_bytes);
    if (fault) {
        HttpResponse response = error_response(fault->status, fault->message, fault->code);
        co_await refuse(std::move(response));
        co_return false;
    }
    parser.eager(true);
    head_only_ = head.method == "HEAD";

    HttpRequest request;
    request.arrival_ns = shared_->clock.now_ns();
    request.remote = transport_->remote();
    const std::string_view wanted_id = head.header("x-request-id");
    request_id_ = clean_request_id(wanted_id) ? std::string(wanted_id) : shared_->new_request_id();
    origin_ = head.header("origin");
    std::optional<HttpResponse> early = admit(head, request);
    if (early) {
        // Only an answer to a preflight leaves the connection open; what is refused has an unread body, or soon another try.
        if (early->status >= 300 || head.has_body() || !head.keep_alive) {
            co_await refuse(std::move(*early));
            co_return false;
        }
        Answer answer(*this, false, true, head.keep_alive);
        co_await answer.respond(std::move(*early));
        co_return answer.may_go_on();
    }

    BodyHold hold(*shared_);
    if (head.has_body()) {
        const bool complete = co_await receive_body(head, parser, hold);
        if (!complete) co_return false;
        request.body = std::move(parser.get().body());
    }
    request.request_id = request_id_;
    const bool chunked = head.version_minor == 1;
    const bool keep_alive = head.keep_alive;
    request.method = std::move(head.method);
    request.path = std::move(head.path);
    request.query = std::move(head.query);
    request.headers = std::move(head.headers);

    phase_ = Phase::handling;
    ++shared_->stats.requests;
    Answer answer(*this, head_only_, chunked, keep_alive);
    if (ended_) peer_gone();
    co_await shared_->handler(std::move(request), answer);
    if (!answer_begun_ && !answer.client_gone()) {
        HttpResponse response = error_response(500, "the server gave no answer to this request", "internal_error");
        co_await answer.respond(std::move(response));
    }
    if (!answer.complete() && answer_begun_) abort();  // a stream without its end must not look like one
    co_return answer.may_go_on();
}

asio::awaitable<bool> Connection::receive_head(HeadGate& gate, int64_t deadline_ns) {
    for (;;) {
        const GateState state = gate.scan(buffered());
        if (state == GateState::complete) co_return true;
        if (state == GateState::refused) {
            HttpResponse response = error_response(gate.refusal().status, gate.refusal().message, gate.refusal().code);
            co_await refuse(std::move(response));
            co_return false;
        }
        const Input input = co_await wait_input(buffer_.size(), deadline_ns);
        if (input == Input::bytes) continue;
        if (input == Input::timeout) {
            HttpResponse response = error_response(408, "the request head took too long", "request_timeout");
            co_await refuse(std::move(response));
        }
        co_return false;
    }
}

// Decodes the body into `parser`. false: refused or left, and answered if that was possible.
asio::awaitable<bool> Connection::receive_body(const Head& head, BeastParser& parser, BodyHold& hold) {
    const int64_t deadline_ns = deadline_after(shared_->options.limits.body_time_ms);
    if (!hold.grow_to(head.content_length.value_or(0))) {
        co_await refuse(bodies_full());
        co_return false;
    }
    if (head.expect_continue && buffer_.size() == 0) {
        const bool sent = co_await write_all("HTTP/1.1 100 Continue\r\n\r\n", {});
        if (!sent) co_return false;
    }
    ChunkGate chunks(shared_->options.limits.body_bytes);
    size_t passed_bytes = 0;  // at the front of the buffer: through the gate, not yet given to Beast
    std::optional<Refusal> fault;
    while (!fault) {
        GateState state = GateState::more;
        size_t ready_bytes = buffer_.size();
        if (head.chunked) {
            size_t used = 0;
            state = chunks.feed(buffered().substr(passed_bytes), used);
            passed_bytes += used;
            if (state == GateState::refused) {
                fault = chunks.refusal();
                break;
            }
            ready_bytes = passed_bytes - chunks.pending_bytes();
        }
        if (head.chunked && !hold.grow_to(chunks.body_bytes())) {
            co_await refuse(bodies_full());
            co_return false;
        }
        if (ready_bytes > 0) {
            error_code error;
            const size_t taken = parser.put(asio::buffer(buffered().data(), ready_bytes), error);
            consume(taken);
            // What the gate found whole, Beast takes whole; after a body of known length the next request may follow.
            if ((error && error != boost::beast::http::error::need_more) || (head.chunked && taken != ready_bytes)) {
                fault = Refusal{400, "malformed request body (" + error.message() + ")", "malformed_request"};
                break;
            }
            passed_bytes -= head.chunked ? taken : 0;
        }
        if (parser.is_done() && (!head.chunked || state == GateState::complete)) co_return true;
        if (parser.is_done() || state == GateState::complete) {
            fault = Refusal{400, "request is ambiguous: two readings of its body differ", "malformed_request"};
            break;
        }
        const Input input = co_await wait_input(buffer_.size(), deadline_ns);
        if (input == Input::ended) co_return false;
        if (input == Input::timeout) fault = Refusal{408, "the request body took too long", "request_timeout"};
    }
    HttpResponse response = error_response(fault->status, fault->message, fault->code);
    co_await refuse(std::move(response));
    co_return false;
}

// What is settled before a body is read. An answer, or nothing and `request` knows its key.
std::optional<HttpResponse> Connection::admit(const Head& head, HttpRequest& request) {
    std::optional<Authority> host = head.host.empty() ? std::nullopt : parse_authority(head.host);
    // HTTP/1.0 may come without Host (health checks of proxies do); no browser sends it, so nothing can be rebound.
    if (!head.host.empty() && (!host || !shared_->host_check.allows(*host)))
        return error_response(403,
                              "this server does not answer to the host name " + base::printable(head.host) + " (--allow-host adds names)",
                              "host_not_allowed");
    if (Cors::is_preflight(head)) return shared_->cors.preflight(head);
    if (head.path == "*") {
        HttpResponse response;
        response.status = 204;
        response.headers.emplace_back("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
        return response;
    }
    const bool reads_only = head.method == "GET" || head.method == "HEAD";
    if (!reads_only && head.method != "OPTIONS" && !origin_.empty() && !shared_->cors.allows(origin_) &&
        !(host && HostCheck::same_origin(origin_, *host)))
        return error_response(403,
                              "requests from the web origin " + base::printable(origin_) + " are not allowed (--cors-origin adds origins)",
                              "origin_not_allowed");
    const auto& keys = shared_->options.keys;
    if (keys.empty()) return std::nullopt;
    std::string_view path = head.path;
    if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    const auto& open = shared_->options.open_paths;
    if (reads_only && std::find(open.begin(), open.end(), path) != open.end()) return std::nullopt;
    const ApiKey* key = nullptr;
    if (std::optional<HttpResponse> refusal = authenticate(head, keys, key)) return refusal;
    request.key_salt = key->salt;
    request.key_name = key->name;
    return std::nullopt;
}

// --- the end ------------------------------------------------------------------------------------------

// The last answer of a connection, made before or instead of the handler's.
asio::awaitable<void> Connection::refuse(HttpResponse response) {
    ++shared_->stats.refusals;
    if (request_id_.empty()) request_id_ = shared_->new_request_id();
    answer_begun_ = true;
    const std::string head = head_text(response, false, false, response.body.size());
    co_await write_all(head, head_only_ ? std::string_view() : std::string_view(response.body));
}

// A close while the client still sends would reset the connection and could destroy the answer on its way, so what comes
// is read and dropped for a while.
asio::awaitable<void> Connection::linger() {
    if (!broken_ && !ended_) {
        transport_->shutdown_send();
        discarding_ = true;
        consume(buffer_.size());
        buffer_.shrink_to_fit();
        co_await wait_input(std::numeric_limits<size_t>::max(), deadline_after(shared_->options.limits.linger_time_ms));
    }
    const bool reset = broken_;
    broken_ = true;
    transport_->close(reset);
    space_timer_.cancel();
}

}  // namespace server
