// The server's own connection code with a handler for tests: any method and path answers with the request's body
// (what uNetworking/h1spec asks of a server under test); a few paths behave as the routes of the product do.
//   http_echo_server PORT [--key-file PATH] [--allow-host NAME]... [--cors-origin ORIGIN]... [--address A] [--insecure]
//                    [--idle-ms N] [--header-ms N] [--body-ms N] [--stall-ms N] [--linger-ms N] [--connections N]
// PORT 0 takes a free one; the line "port N" is printed when it listens. SIGTERM drains and ends it with 0.
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "http_test_handler.h"

namespace {

int64_t number(const char* text) {
    int64_t value = 0;
    std::from_chars(text, text + std::strlen(text), value);
    return value;
}

}  // namespace

int main(int argc, char** argv) {
    server::HttpOptions options;
    options.port = static_cast<uint16_t>(argc > 1 ? number(argv[1]) : 0);
    for (int i = 2; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--insecure") {
            options.insecure = true;
            continue;
        }
        if (i + 1 == argc) return 2;
        const char* value = argv[++i];
        if (option == "--key-file") {
            auto keys = server::ApiKeys::load(value);
            if (!keys) {
                std::fprintf(stderr, "%s\n", keys.error().message.c_str());
                return 1;
            }
            options.keys = std::move(keys).value();
        } else if (option == "--allow-host")
            options.hosts.emplace_back(value);
        else if (option == "--cors-origin")
            options.cors_origins.emplace_back(value);
        else if (option == "--address")
            options.address = value;
        else if (option == "--idle-ms")
            options.limits.idle_time_ms = number(value);
        else if (option == "--header-ms")
            options.limits.header_time_ms = number(value);
        else if (option == "--body-ms")
            options.limits.body_time_ms = number(value);
        else if (option == "--stall-ms")
            options.limits.write_stall_ms = number(value);
        else if (option == "--linger-ms")
            options.limits.linger_time_ms = number(value);
        else if (option == "--connections")
            options.limits.connections_count = static_cast<uint32_t>(number(value));
        else
            return 2;
    }
    boost::asio::io_context io(1);
    http_test::Pieces pieces;
    server::HttpServer http(
        io, std::move(options),
        [&pieces](server::HttpRequest request, server::ResponseWriter& writer) {
            return http_test::handle(std::move(request), writer, pieces);
        },
        base::system_clock());
    pieces.server = &http;
    auto port = http.start();
    if (!port) {
        std::fprintf(stderr, "%s\n", port.error().message.c_str());
        return 1;
    }
    std::printf("port %u\n", port.value());
    std::fflush(stdout);
    boost::asio::signal_set signals(io, SIGTERM, SIGINT);
    signals.async_wait([&](const boost::system::error_code& error, int) {
        if (error) return;
        http.stop_accepting();
        http.close_idle();
    });
    io.run();
    return 0;
}
