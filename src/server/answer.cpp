// Sending: heads, framing, writes with their time limit, and the ResponseWriter that a handler sees.
#include "server/answer.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>
#include <chrono>
#include <cstdio>

#include "base/check.h"

namespace server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

asio::awaitable<bool> Connection::write_all(std::string_view first, std::string_view second) {
    while (!first.empty() || !second.empty()) {
        if (broken_) co_return false;
        const uint64_t number = ++write_number_;
        write_timer_.expires_after(std::chrono::milliseconds(shared_->options.limits.write_stall_ms));
        write_timer_.async_wait([weak = weak_from_this(), number](const error_code& error) {
            const auto self = weak.lock();
            // The number tells a write that ended just as its time did.
            if (error || !self || self->write_number_ != number) return;
            ++self->shared_->stats.writes_stalled;
            self->abort();
        });
        const std::array<asio::const_buffer, 2> buffers = {asio::buffer(first.data(), first.size()),
                                                           asio::buffer(second.data(), second.size())};
        const IoResult sent = co_await transport_->write_some(buffers);
        ++write_number_;
        write_timer_.cancel();
        if (sent.error) {
            broken_ = true;
            peer_gone();
            co_return false;
        }
        CHECK(sent.bytes > 0 && sent.bytes <= first.size() + second.size());
        const size_t of_first = std::min(sent.bytes, first.size());
        first.remove_prefix(of_first);
        second.remove_prefix(sent.bytes - of_first);
    }
    co_return !broken_;
}

std::string Connection::head_text(const HttpResponse& response, bool keep_alive, bool chunked, std::optional<size_t> length) const {
    std::string text;
    text.reserve(512);
    const auto put = [&](std::string_view name, std::string_view value) {
        text += name;
        text += ": ";
        // A line break in a value would begin a header of someone else's choice.
        for (const char c : value) text += (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f ? ' ' : c;
        text += "\r\n";
    };
    const auto reason = boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(response.status));
    text += "HTTP/1.1 " + std::to_string(response.status) + " ";
    text.append(reason.data(), reason.size());
    text += "\r\n";
    if (response.status != 204 && response.status != 304 && !response.content_type.empty()) put("Content-Type", response.content_type);
    if (length) put("Content-Length", std::to_string(*length));
    if (chunked) put("Transfer-Encoding", "chunked");
    for (const auto& [name, value] : response.headers) put(name, value);
    std::vector<std::pair<std::string, std::string>> cross_origin;
    shared_->cors.add_headers(origin_, cross_origin);
    for (const auto& [name, value] : cross_origin) put(name, value);
    put("X-Request-Id", request_id_);
    put("X-Content-Type-Options", "nosniff");
    put("Connection", keep_alive ? "keep-alive" : "close");
    text += "\r\n";
    return text;
}

Connection::Answer::Answer(Connection& connection, bool head_only, bool chunked, bool keep_alive)
    : connection_(connection), head_only_(head_only), chunked_(chunked), keep_alive_(keep_alive) {
    CHECK(connection_.answer_ == nullptr);
    connection_.answer_ = this;
}

Connection::Answer::~Answer() {
    connection_.answer_ = nullptr;
    connection_.answer_complete_ = complete();
}

asio::awaitable<void> Connection::Answer::respond(HttpResponse response) {
    CHECK(state_ == State::fresh);
    connection_.answer_begun_ = true;
    keep_alive_ = keep_alive_ && !connection_.shared_->draining;
    const bool bodiless = response.status == 204 || response.status == 304 || response.status < 200;
    if (bodiless) response.body.clear();
    const std::string head =
        connection_.head_text(response, keep_alive_, false, bodiless ? std::nullopt : std::optional<size_t>(response.body.size()));
    state_ = State::sending;
    // A client that closed its sending side only (`nc -N`) still gets this; one that is gone makes the write fail.
    const bool sent = co_await connection_.write_all(head, head_only_ ? std::string_view() : std::string_view(response.body));
    state_ = sent ? State::complete : State::failed;
}

asio::awaitable<bool> Connection::Answer::begin_stream(HttpResponse head) {
    CHECK(state_ == State::fresh);
    if (client_gone()) co_return false;
    connection_.answer_begun_ = true;
    keep_alive_ = keep_alive_ && chunked_ && !connection_.shared_->draining;
    const std::string text = connection_.head_text(head, keep_alive_, chunked_, std::nullopt);
    state_ = State::sending;
    const bool sent = co_await connection_.write_all(text, {});
    state_ = sent ? State::streaming : State::failed;
    co_return sent && !client_gone();
}

asio::awaitable<bool> Connection::Answer::write(std::string bytes) {
    if (state_ == State::failed || client_gone()) co_return false;
    CHECK(state_ == State::streaming);
    if (head_only_ || bytes.empty()) co_return true;  // an empty chunk would be the end of the body
    std::string frame;
    if (chunked_) {
        char digits[24];
        const int n = std::snprintf(digits, sizeof digits, "%zx\r\n", bytes.size());
        frame.assign(digits, static_cast<size_t>(n));
        bytes += "\r\n";
    }
    state_ = State::sending;
    const bool sent = co_await connection_.write_all(frame, bytes);
    state_ = sent ? State::streaming : State::failed;
    co_return sent && !client_gone();
}

asio::awaitable<bool> Connection::Answer::end_stream() {
    if (state_ == State::failed) co_return false;
    CHECK(state_ == State::streaming);
    state_ = State::sending;
    const bool sent = co_await connection_.write_all(chunked_ && !head_only_ ? "0\r\n\r\n" : "", {});
    state_ = sent ? State::complete : State::failed;
    co_return sent;
}

void Connection::Answer::on_client_gone(std::function<void()> callback) {
    on_gone_ = std::move(callback);
    if (!gone_) return;
    // It left before anyone asked. Not called from here: the caller may not be ready yet.
    asio::post(connection_.executor_, [watch = std::weak_ptr<bool>(alive_), this] {
        if (!watch.expired()) call_back();
    });
}

void Connection::Answer::set_gone() {
    gone_ = true;
    call_back();
}

void Connection::Answer::call_back() {
    if (const auto callback = std::exchange(on_gone_, nullptr)) callback();
}

}  // namespace server
