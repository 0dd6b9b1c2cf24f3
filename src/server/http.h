// The seam between the connection code (bytes, gate, time-outs: server/connection) and the routes (server/routes):
// a handler gets a whole, checked request and answers through a ResponseWriter. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>

namespace server {

struct HttpRequest {
    std::string method;                                            // "GET"
    std::string path;                                              // percent-decoded, no query, begins with '/'
    std::string query;                                             // raw, without '?'
    std::vector<std::pair<std::string, std::string>> headers;      // names in lower case
    std::string body;
    std::string remote;                                            // "127.0.0.1:50000"
    std::string request_id;                                        // the client's X-Request-Id when it is clean, else made by us
    int64_t arrival_ns = 0;
    // First value of a header by lower-case name; empty when absent.
    std::string_view header(std::string_view name) const;
};

struct HttpResponse {
    unsigned status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers;      // further ones
    std::string body;
};

// Writes the answer to one request. All calls on the loop thread, from the handler's coroutine, except that
// on_client_gone may be called back at any await. Common headers (Date-free: X-Request-Id, nosniff, CORS, connection
// handling, HEAD without body) are added here and nowhere else.
class ResponseWriter {
  public:
    virtual ~ResponseWriter() = default;
    virtual boost::asio::awaitable<void> respond(HttpResponse response) = 0;
    // Chunked streaming: begin once, write any number of times, end once. false: the client is gone or stalled
    // for limits::http_write_stall_ms; stop and return.
    virtual boost::asio::awaitable<bool> begin_stream(HttpResponse head) = 0;
    virtual boost::asio::awaitable<bool> write(std::string bytes) = 0;
    virtual boost::asio::awaitable<bool> end_stream() = 0;
    // Called once, on the loop, when the peer closes or resets while the handler is still at work (also between
    // writes and before the answer has begun). Set it before awaiting anything.
    virtual void on_client_gone(std::function<void()> callback) = 0;
    virtual bool client_gone() const = 0;
};

using Handler = std::function<boost::asio::awaitable<void>(HttpRequest, ResponseWriter&)>;

}  // namespace server
