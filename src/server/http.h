// The seam between the connection code (bytes, gate, time-outs: server/connection) and the routes (server/routes):
// a handler gets a whole, checked request and answers through a ResponseWriter. Loop thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {

struct HttpRequest {
    std::string method;                                        // "GET"
    std::string path;                                          // percent-decoded, no query, begins with '/'
    std::string query;                                         // raw, without '?'
    std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
    std::string body;
    std::string remote;      // "127.0.0.1:50000"
    std::string request_id;  // the client's X-Request-Id when it is clean, else made by us
    int64_t arrival_ns = 0;  // base::Clock, when the head was complete
    uint64_t key_salt = 0;   // from the API key's hash; 0 when the server has no keys
    std::string key_name;    // name of the key in the key file, for logs; may be empty
    // First value of a header by lower-case name; empty when absent.
    std::string_view header(std::string_view name) const;
};

struct HttpResponse {
    unsigned status = 200;
    std::string content_type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers;  // further ones
    std::string body;
};

// Writes the answer to one request: either respond, or begin_stream, write..., end_stream. All calls on the loop thread,
// from the handler's coroutine, one at a time. Common headers (X-Request-Id, nosniff, CORS, Connection), HEAD without a
// body and framing are added here and nowhere else. A handler that returns without an answer gives a 500; one that
// throws gives a 500 and a closed connection, or a cut one when its stream had begun.
//
// "Gone" is a client that reset the connection or closed its sending side (FIN) while the handler is at work: client
// libraries end a request by closing, and the two can't be told apart before a write fails. So a stream ends with either;
// respond() still reaches a client that only closed its sending side (`nc -N`).
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
