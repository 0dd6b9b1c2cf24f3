// The handler that tests of the HTTP server put behind its connection code: echo, and paths that behave as the routes
// of the product do (streams, long silence, failures).
#pragma once

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

#include "server/listener.h"
#include "server/sse.h"

namespace http_test {

namespace asio = boost::asio;
using server::HttpRequest;
using server::HttpResponse;
using server::ResponseWriter;

struct Counts {
    int clients_gone = 0;  // callbacks
    int streams_cut = 0;   // write() said false
};

// Sends `count` events, `gap_ms` apart, until the client leaves.
inline asio::awaitable<void> stream_events(ResponseWriter& writer, size_t count, int gap_ms, size_t payload_bytes, Counts& counts) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    writer.on_client_gone([&timer, &counts] {
        ++counts.clients_gone;
        timer.cancel();
    });
    bool alive = co_await writer.begin_stream(server::sse_head());
    for (size_t i = 0; alive && i < count; ++i) {
        std::string event = server::sse_data("{\"n\":" + std::to_string(i) + ",\"pad\":\"" + std::string(payload_bytes, 'x') + "\"}");
        alive = co_await writer.write(std::move(event));
        if (gap_ms > 0 && alive) {
            boost::system::error_code ignored;
            timer.expires_after(std::chrono::milliseconds(gap_ms));
            co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
    }
    if (!alive) {
        ++counts.streams_cut;
        co_return;
    }
    std::string end(server::sse_done);
    alive = co_await writer.write(std::move(end));
    if (alive) co_await writer.end_stream();
}

// Answers nothing until the client leaves (a long prefill).
inline asio::awaitable<void> wait_for_ever(ResponseWriter& writer, Counts& counts) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_at(std::chrono::steady_clock::time_point::max());
    bool gone = false;
    writer.on_client_gone([&] {
        ++counts.clients_gone;
        gone = true;
        timer.cancel();
    });
    while (!gone) {
        boost::system::error_code ignored;
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

struct Pieces {
    server::HttpServer* server = nullptr;
    Counts counts;
};

inline asio::awaitable<void> handle(HttpRequest request, ResponseWriter& writer, Pieces& pieces) {
    HttpResponse response;
    if (request.path == "/stream") {
        co_await stream_events(writer, 20, 20, 10, pieces.counts);
    } else if (request.path == "/flood") {
        co_await stream_events(writer, 1'000'000, 0, 1'000, pieces.counts);
    } else if (request.path == "/wait") {
        co_await wait_for_ever(writer, pieces.counts);
    } else if (request.path == "/throw") {
        throw std::runtime_error("handler failed\nas asked");
    } else if (request.path == "/throw-late") {
        const bool alive = co_await writer.begin_stream(server::sse_head());
        if (alive) throw std::runtime_error("handler failed in a stream");
    } else if (request.path == "/silent") {
        co_return;
    } else if (request.path == "/stats") {
        const server::HttpStats& s = pieces.server->stats();
        response.body =
            "{\"gone\":" + std::to_string(pieces.counts.clients_gone) + ",\"cut\":" + std::to_string(pieces.counts.streams_cut) +
            ",\"active\":" + std::to_string(pieces.server->active_connections()) + ",\"requests\":" + std::to_string(s.requests) +
            ",\"refusals\":" + std::to_string(s.refusals) + ",\"stalled\":" + std::to_string(s.writes_stalled) +
            ",\"over_cap\":" + std::to_string(s.connections_over_cap) + ",\"accept_failures\":" + std::to_string(s.accept_failures) +
            ",\"accepted\":" + std::to_string(s.connections_accepted) + "}";
        co_await writer.respond(std::move(response));
    } else if (request.path == "/show") {
        response.content_type = "text/plain";
        response.body = request.method + "\n" + request.path + "\n" + request.query + "\n" + request.remote + "\n" + request.request_id +
                        "\n" + std::to_string(request.key_salt) + "\n" + request.key_name + "\n";
        for (const auto& [name, value] : request.headers) response.body += name + "=" + value + "\n";
        co_await writer.respond(std::move(response));
    } else {
        response.content_type = "text/plain";
        response.body = std::move(request.body);
        co_await writer.respond(std::move(response));
    }
}

}  // namespace http_test
