// For tests of the HTTP server: the connection code over a socket in memory, and a reader of answers.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/_experimental/test/stream.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/connection.h"

namespace http_test {

namespace asio = boost::asio;
using MemoryStream = boost::beast::test::stream;

class MemoryTransport final : public server::Transport {
  public:
    explicit MemoryTransport(MemoryStream stream) : stream_(std::move(stream)) {}
    asio::awaitable<server::IoResult> read_some(asio::mutable_buffer into) override {
        server::IoResult result;
        result.bytes = co_await stream_.async_read_some(into, asio::redirect_error(asio::use_awaitable, result.error));
        co_return result;
    }
    asio::awaitable<server::IoResult> write_some(std::array<asio::const_buffer, 2> from) override {
        server::IoResult result;
        result.bytes = co_await stream_.async_write_some(from, asio::redirect_error(asio::use_awaitable, result.error));
        co_return result;
    }
    bool peer_has_ended() override { return false; }
    void shutdown_send() override {}
    void close(bool) override { stream_.close(); }
    std::string remote() const override { return "127.0.0.1:1"; }

  private:
    MemoryStream stream_;
};

struct Reply {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case; repeated ones joined by ", "
    std::string body;
    bool whole = true;  // the body had all its bytes
    std::string header(const std::string& name) const {
        const auto it = headers.find(name);
        return it == headers.end() ? "" : it->second;
    }
};

// All answers in `bytes`, in order. What is no answer yields one of status -1, which no test expects.
// `head_only`: the answers are to HEAD and have no bodies.
inline std::vector<Reply> parse_replies(std::string_view bytes, bool head_only = false) {
    std::vector<Reply> replies;
    while (!bytes.empty()) {
        Reply reply;
        const size_t end = bytes.find("\r\n\r\n");
        if (bytes.substr(0, 9) != "HTTP/1.1 " || end == std::string_view::npos) {
            reply.status = -1;
            reply.body = bytes;
            replies.push_back(reply);
            break;
        }
        std::string_view head = bytes.substr(0, end);
        bytes.remove_prefix(end + 4);
        reply.status = std::atoi(std::string(head.substr(9, 3)).c_str());
        head.remove_prefix(std::min(head.find("\r\n"), head.size()));
        while (!head.empty()) {
            head.remove_prefix(2);
            const size_t line_end = std::min(head.find("\r\n"), head.size());
            const std::string_view line = head.substr(0, line_end);
            const size_t colon = line.find(": ");
            std::string name(line.substr(0, colon));
            for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            std::string& value = reply.headers[name];
            if (!value.empty()) value += ", ";
            if (colon != std::string_view::npos) value += line.substr(colon + 2);
            head.remove_prefix(line_end);
        }
        if (head_only || reply.status == 204 || reply.status == 304 || reply.status < 200) {
        } else if (reply.header("transfer-encoding") == "chunked") {
            reply.whole = false;
            for (;;) {
                const size_t line = bytes.find("\r\n");
                if (line == std::string_view::npos) break;
                const size_t size = std::strtoul(std::string(bytes.substr(0, line)).c_str(), nullptr, 16);
                if (bytes.size() < line + 2 + size + 2) break;
                reply.body += bytes.substr(line + 2, size);
                bytes.remove_prefix(line + 2 + size + 2);
                if (size == 0) {
                    reply.whole = true;
                    break;
                }
            }
            if (!reply.whole) bytes = {};
        } else if (!reply.header("content-length").empty()) {
            const size_t size = std::strtoul(reply.header("content-length").c_str(), nullptr, 10);
            reply.whole = size <= bytes.size();
            reply.body = bytes.substr(0, size);
            bytes.remove_prefix(std::min(size, bytes.size()));
        } else {
            reply.body = bytes;  // ends with the connection
            bytes = {};
        }
        replies.push_back(std::move(reply));
    }
    return replies;
}

// "200 200 400"
inline std::string statuses(const std::vector<Reply>& replies) {
    std::string text;
    for (const Reply& reply : replies) {
        if (!text.empty()) text += ' ';
        text += std::to_string(reply.status);
    }
    return text;
}

// Answers with method, path and body of the request.
inline asio::awaitable<void> echo(server::HttpRequest request, server::ResponseWriter& writer) {
    server::HttpResponse response;
    response.content_type = "text/plain";
    response.body = request.method + " " + request.path + " " + request.body;
    co_await writer.respond(std::move(response));
}

// Connections in memory that share options and handler.
class MemoryServer {
  public:
    explicit MemoryServer(server::HttpOptions options = {}, server::Handler handler = echo) {
        options.log = [this](std::string_view line) { log += std::string(line) + "\n"; };
        shared = std::make_shared<server::HttpShared>(std::move(options), std::move(handler), base::system_clock(),
                                                      asio::ip::make_address("127.0.0.1"));
    }

    // A client's end; the server's end is a started connection. `fail`: fails its n-th operation.
    std::unique_ptr<MemoryStream> connect(boost::beast::test::fail_count* fail = nullptr) {
        auto client = std::make_unique<MemoryStream>(io);
        MemoryStream end = fail ? MemoryStream(io, *fail) : MemoryStream(io);
        end.connect(*client);
        auto connection =
            std::make_shared<server::Connection>(shared, std::make_unique<MemoryTransport>(std::move(end)), io.get_executor());
        connection->start();
        return client;
    }

    // Sends bytes and then closes the sending side; everything that came back until nothing moves any more.
    std::string talk(std::string_view bytes, boost::beast::test::fail_count* fail = nullptr) {
        auto client = std::make_unique<MemoryStream>(io);
        MemoryStream end = fail ? MemoryStream(io, *fail) : MemoryStream(io);
        end.connect(*client);
        end.append(boost::beast::string_view(bytes.data(), bytes.size()));
        end.close_remote();
        std::make_shared<server::Connection>(shared, std::make_unique<MemoryTransport>(std::move(end)), io.get_executor())->start();
        run();
        const auto text = client->str();
        return {text.data(), text.size()};
    }
    std::vector<Reply> replies(std::string_view bytes) { return parse_replies(talk(bytes)); }

    // Until nothing is left to do, at most a second.
    void run() {
        io.restart();
        io.run_for(std::chrono::seconds(1));
    }
    // What can be done now.
    void poll() {
        io.restart();
        io.poll();
    }

    asio::io_context io{1};
    std::string log;
    std::shared_ptr<server::HttpShared> shared;
};

}  // namespace http_test
