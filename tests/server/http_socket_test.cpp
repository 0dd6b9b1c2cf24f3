// The server on real sockets of the loopback: listening, caps, descriptors, resets in every state, readers that never
// read, memory. The server runs in a thread of its own; the tests are blocking clients.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "http_harness.h"
#include "http_test_handler.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEARTH_SANITIZED 1
#endif

namespace {

namespace asio = boost::asio;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using Clock = std::chrono::steady_clock;
using http_test::parse_replies;
using http_test::statuses;

class Server {
  public:
    explicit Server(server::HttpOptions options = {}) {
        options.port = 0;
        options.log = [this](std::string_view) { ++log_lines; };
        http_.emplace(
            io_, std::move(options),
            [this](server::HttpRequest request, server::ResponseWriter& writer) {
                return http_test::handle(std::move(request), writer, pieces_);
            },
            base::system_clock());
        pieces_.server = &*http_;
        auto port = http_->start();
        EXPECT_TRUE(port.ok()) << port.error().message;
        port_ = port.ok() ? port.value() : 0;
        thread_ = std::thread([this] { io_.run(); });
    }
    uint16_t port() const { return port_; }
    template <typename F>
    auto on_loop(F&& f) {
        std::promise<decltype(f())> promise;
        asio::post(io_, [&] { promise.set_value(f()); });
        return promise.get_future().get();
    }
    ~Server() {
        on_loop([this] {
            http_.reset();
            return 0;
        });
        guard_.reset();
        thread_.join();  // returns only when no coroutine is left waiting
    }
    server::HttpStats stats() {
        return on_loop([this] { return http_->stats(); });
    }
    size_t active() {
        return on_loop([this] { return http_->active_connections(); });
    }
    http_test::Counts counts() {
        return on_loop([this] { return pieces_.counts; });
    }
    server::HttpServer& http() { return *http_; }
    // Whether `condition` becomes true within `time`.
    template <typename F>
    static bool within(Clock::duration time, F&& condition) {
        const auto end = Clock::now() + time;
        while (Clock::now() < end) {
            if (condition()) return true;
            std::this_thread::sleep_for(2ms);
        }
        return condition();
    }

    std::atomic<int> log_lines{0};

  private:
    asio::io_context io_{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
    http_test::Pieces pieces_;
    std::optional<server::HttpServer> http_;
    uint16_t port_ = 0;
    std::thread thread_;
};

class Client {
  public:
    Client() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
    explicit Client(uint16_t port, int receive_buffer = 0) : Client() {
        if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        EXPECT_TRUE(connect(port));
    }
    Client(const Client&) = delete;
    ~Client() {
        if (fd_ >= 0) ::close(fd_);
    }
    bool connect(uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval patience{5, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    // Bytes taken before the server closed.
    size_t send(std::string_view bytes) {
        size_t sent = 0;
        while (sent < bytes.size()) {
            const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
            if (n <= 0) break;
            sent += static_cast<size_t>(n);
        }
        return sent;
    }
    void shutdown() { ::shutdown(fd_, SHUT_WR); }
    void reset() {
        const linger hard{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        ::close(std::exchange(fd_, -1));
    }
    // Everything up to the server's close.
    std::string read_all() {
        std::string text;
        while (read_more(text)) {}
        return text;
    }
    // Until `text` has this many bytes or the end.
    bool read_more(std::string& text) {
        char chunk[16'384];
        const ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
        if (n > 0) text.append(chunk, static_cast<size_t>(n));
        last_error = n < 0 ? errno : 0;
        return n > 0;
    }
    // One answer with a Content-Length.
    http_test::Reply read_one() {
        std::string text;
        for (;;) {
            const auto replies = parse_replies(text);
            if (!replies.empty() && replies[0].status > 0 && replies[0].whole) return replies[0];
            if (!read_more(text)) return {};
        }
    }
    int last_error = 0;

  private:
    int fd_;
};

std::string get(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n"; }

// Whether this machine lets anyone bind ::1 (containers may not).
bool has_ipv6() {
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    const bool works = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (fd >= 0) ::close(fd);
    return works;
}

TEST(HttpServer, ListensOnEachFamily) {
    for (const char* address : {"127.0.0.1", "localhost", "::1"}) {
        asio::io_context io;
        server::HttpOptions options;
        options.address = address;
        options.port = 0;
        server::HttpServer server(io, options, http_test::echo, base::system_clock());
        const auto port = server.start();
        if (!port.ok() && !has_ipv6()) continue;
        ASSERT_TRUE(port.ok()) << port.error().message;
        EXPECT_GT(port.value(), 0);
        // A second one can't have the same port, and says so.
        options.port = port.value();
        server::HttpServer second(io, options, http_test::echo, base::system_clock());
        const auto taken = second.start();
        ASSERT_FALSE(taken.ok());
        EXPECT_NE(taken.error().message.find("in use"), std::string::npos) << taken.error().message;
        EXPECT_EQ(taken.error().code, base::ErrorCode::io);
    }
}

TEST(HttpServer, RefusesToBindBeyondLoopbackWithoutAKey) {
    asio::io_context io;
    server::HttpOptions options;
    options.address = "0.0.0.0";
    options.port = 0;
    server::HttpServer refused(io, options, http_test::echo, base::system_clock());
    EXPECT_FALSE(refused.start().ok());
    options.insecure = true;
    server::HttpServer told(io, options, http_test::echo, base::system_clock());
    EXPECT_TRUE(told.start().ok());
}

TEST(HttpServer, AllAddressesTakeIpv4Too) {
    server::HttpOptions options;
    options.address = "::";
    options.insecure = true;
    if (!has_ipv6()) return;
    Server server(options);
    Client client(server.port());
    client.send(get("/show"));
    const auto reply = client.read_one();
    EXPECT_EQ(reply.status, 200);
    EXPECT_NE(reply.body.find("\n127.0.0.1:"), std::string::npos) << reply.body;  // not ::ffff:127.0.0.1
}

TEST(HttpServer, AThousandPipelinedRequestsInOneSend) {
    Server server;
    Client client(server.port());
    std::string requests;
    for (int i = 0; i < 1'000; ++i)
        requests += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc";
    std::thread sender([&] {
        client.send(requests);
        client.shutdown();
    });
    const auto replies = parse_replies(client.read_all());
    sender.join();
    ASSERT_EQ(replies.size(), 1'000u);
    for (const auto& reply : replies) EXPECT_EQ(reply.body, "abc");
    EXPECT_TRUE(Server::within(1s, [&] { return server.active() == 0; }));
}

TEST(HttpServer, DescriptorsAreNotInherited) {
    const auto open_descriptors = [] {
        std::set<int> fds;
        DIR* dir = ::opendir("/proc/self/fd");
        while (const dirent* entry = ::readdir(dir))
            if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != ::dirfd(dir)) fds.insert(std::atoi(entry->d_name));
        ::closedir(dir);
        return fds;
    };
    const std::set<int> before = open_descriptors();
    Server server;
    Client client(server.port());
    client.send(get("/"));
    EXPECT_EQ(client.read_one().status, 200);
    size_t checked = 0;
    for (const int fd : open_descriptors()) {
        if (before.count(fd)) continue;
        const int flags = ::fcntl(fd, F_GETFD);
        EXPECT_NE(flags & FD_CLOEXEC, 0) << "descriptor " << fd;
        ++checked;
    }
    EXPECT_GE(checked, 4u);  // listener, reserve, both ends of the connection, and what Asio opens
    struct sigaction action {};
    ::sigaction(SIGPIPE, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_IGN);
}

TEST(HttpServer, ConnectionCap) {
    server::HttpOptions options;
    options.limits.connections_count = 2;
    Server server(options);
    Client first(server.port()), second(server.port());
    first.send(get("/wait"));
    second.send(get("/wait"));
    EXPECT_TRUE(Server::within(1s, [&] { return server.stats().requests == 2; }));
    Client third(server.port());
    third.send(get("/"));
    const auto replies = parse_replies(third.read_all());
    ASSERT_EQ(statuses(replies), "503");
    EXPECT_EQ(replies[0].header("retry-after"), "1");
    EXPECT_EQ(replies[0].body.substr(0, 10), "{\"error\":{");
    first.reset();
    EXPECT_TRUE(Server::within(1s, [&] { return server.active() == 1; }));
    Client fourth(server.port());
    fourth.send(get("/"));
    EXPECT_EQ(fourth.read_one().status, 200);
    EXPECT_EQ(server.stats().connections_over_cap, 1u);
}

// More is pipelined behind the request at work than the buffer holds, then the client goes: it is noticed all the same.
// (Only what TCP delivers can be: behind a full receive window of the kernel an orderly end waits until the request is done.)
TEST(HttpServer, AClientThatLeavesBehindAFullBufferIsNoticed) {
    for (const bool reset : {false, true}) {
        Server server;
        Client client(server.port());
        std::string flood = get("/wait");
        while (flood.size() < limits::http_read_buffer_bytes + 16 * limits::kib) flood += get("/");
        EXPECT_EQ(client.send(flood), flood.size());
        EXPECT_TRUE(Server::within(2s, [&] { return server.stats().requests == 1; }));
        EXPECT_EQ(server.counts().clients_gone, 0);
        std::this_thread::sleep_for(600ms);  // longer than the socket is asked: a client that is there is not taken for gone
        EXPECT_EQ(server.counts().clients_gone, 0);
        if (reset) client.reset();
        else client.shutdown();
        EXPECT_TRUE(Server::within(5s, [&] { return server.counts().clients_gone == 1; })) << reset;
    }
}

// One client's silent connections must not shut out the others: the longest silent one gives way, those at work stay.
TEST(HttpServer, AtTheCapTheLongestSilentConnectionMakesRoom) {
    server::HttpOptions options;
    options.limits.connections_count = 3;
    Server server(options);
    Client busy(server.port()), slow(server.port()), idle(server.port());
    busy.send("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    slow.send("GET / HTTP/1.1\r\nHost: loc");
    idle.send(get("/"));
    EXPECT_EQ(idle.read_one().status, 200);
    Client fourth(server.port());
    fourth.send(get("/"));
    EXPECT_EQ(fourth.read_one().status, 200);
    EXPECT_EQ(slow.read_all(), "");
    Client fifth(server.port());
    fifth.send(get("/"));
    EXPECT_EQ(fifth.read_one().status, 200);
    EXPECT_EQ(idle.read_all(), "");
    const auto streamed = parse_replies(busy.read_all());
    ASSERT_EQ(statuses(streamed), "200");
    EXPECT_TRUE(streamed[0].whole);
    EXPECT_EQ(server.stats().connections_made_room, 2u);
    EXPECT_EQ(server.stats().connections_over_cap, 0u);
}

TEST(HttpServer, OutOfDescriptors) {
    Server server;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 30; ++i) clients.push_back(std::make_unique<Client>());
    rlimit old{};
    ::getrlimit(RLIMIT_NOFILE, &old);
    // The next free descriptor becomes the limit: accept gets EMFILE at once.
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    rlimit none = old;
    none.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto cpu_ms = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return usage.ru_utime.tv_sec * 1'000 + usage.ru_utime.tv_usec / 1'000 + usage.ru_stime.tv_sec * 1'000 +
               usage.ru_stime.tv_usec / 1'000;
    };
    const auto cpu_before = cpu_ms();
    for (auto& client : clients) EXPECT_TRUE(client->connect(server.port()));  // the backlog takes them
    std::this_thread::sleep_for(600ms);
    const auto cpu_used = cpu_ms() - cpu_before;
    const server::HttpStats stats = server.stats();
    ::setrlimit(RLIMIT_NOFILE, &old);
    EXPECT_GE(stats.accept_failures, 3u);
    EXPECT_LE(stats.accept_failures, 10u);  // 5, 10, 20, ... 320 ms are seven pauses in 635 ms
    EXPECT_EQ(server.log_lines, 1);
    EXPECT_LE(cpu_used, 120);
    // The one that was waiting longest was closed rather than left hanging.
    EXPECT_EQ(clients[0]->read_all(), "");
    clients.clear();
    Client client(server.port());
    client.send(get("/"));
    const auto start = Clock::now();
    EXPECT_EQ(client.read_one().status, 200);
    EXPECT_LT(Clock::now() - start, 1'500ms);
}

TEST(HttpServer, ResetInEveryState) {
    Server server;
    const std::string head = "POST /wait HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
    const std::vector<std::string> states = {"",
                                             "POST /wa",
                                             head,
                                             head + "01234",
                                             head + "0123456789",
                                             head + "0123456789" + get("/"),
                                             head + "0123456789" + "GET / HT",
                                             get("/stream"),
                                             get("/flood"),
                                             "GET / HTTP/1.1\r\n\r\n",
                                             get("/"),
                                             "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"};
    for (int round = 0; round < 3; ++round) {
        for (const std::string& bytes : states) {
            Client client(server.port());
            client.send(bytes);
            if (round > 0) std::this_thread::sleep_for(5ms);
            if (round == 2) {  // the other kind of leaving
                client.shutdown();
                std::this_thread::sleep_for(1ms);
            }
            client.reset();
        }
    }
    EXPECT_TRUE(Server::within(2s, [&] { return server.active() == 0; })) << server.active();
    Client client(server.port());
    client.send(get("/"));
    EXPECT_EQ(client.read_one().status, 200);
    // Those that waited when their client left were told: three states of /wait in the rounds that gave them the time.
    EXPECT_GE(server.counts().clients_gone, 6);
    EXPECT_EQ(server.stats().writes_stalled, 0u);
}

TEST(HttpServer, AClientThatLeavesAStreamIsNoticedAtOnce) {
    Server server;
    for (const bool hard : {false, true}) {
        const int before = server.counts().streams_cut;
        Client client(server.port());
        client.send(get("/stream"));  // 20 events, 20 ms apart
        std::string text;
        while (text.find("\"n\":0") == std::string::npos && client.read_more(text)) {}
        const auto start = Clock::now();
        if (hard)
            client.reset();
        else
            client.shutdown();
        EXPECT_TRUE(Server::within(1s, [&] { return server.counts().streams_cut > before; }));
        EXPECT_LT(Clock::now() - start, 150ms);
    }
}

TEST(HttpServer, AReaderThatNeverReadsIsCutOff) {
    server::HttpOptions options;
    options.limits.write_stall_ms = 300;
    Server server(options);
    Client stalled(server.port(), 2'048);
    stalled.send(get("/flood"));
    // Meanwhile others are served.
    Client other(server.port());
    const auto start = Clock::now();
    for (int i = 0; i < 50; ++i) {
        other.send(get("/"));
        EXPECT_EQ(other.read_one().status, 200);
    }
    EXPECT_LT(Clock::now() - start, 250ms);
    EXPECT_TRUE(Server::within(3s, [&] { return server.stats().writes_stalled == 1; }));
    EXPECT_TRUE(Server::within(1s, [&] { return server.counts().streams_cut == 1 && server.active() == 1; }));
    EXPECT_EQ(server.counts().clients_gone, 1);
}

TEST(HttpServer, ASlowReaderGetsEverything) {
    server::HttpOptions options;
    options.limits.write_stall_ms = 1'000;
    Server server(options);
    Client client(server.port(), 2'048);
    client.send("POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n" + std::string(1'000'000, 'q'));
    std::this_thread::sleep_for(300ms);
    const auto replies = parse_replies(client.read_all());
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_EQ(replies[0].body, std::string(1'000'000, 'q'));
}

TEST(HttpServer, ARefusalArrivesThoughTheClientGoesOnSending) {
    Server server;
    Client client(server.port());
    // Everything is sent before anything is read, as simple clients do: without the lingering close this ends in a reset.
    const size_t sent = client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6000000\r\n\r\n" + std::string(6'000'000, 'b'));
    EXPECT_GT(sent, 6'000'000u);
    client.shutdown();
    const auto replies = parse_replies(client.read_all());
    EXPECT_EQ(statuses(replies), "413");
    EXPECT_EQ(client.last_error, 0);
    EXPECT_EQ(server.stats().requests, 0u);
}

TEST(HttpServer, HalfClosedClientsGetTheirAnswer) {
    Server server;
    Client client(server.port());
    client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
    client.shutdown();
    const auto replies = parse_replies(client.read_all());
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_EQ(replies[0].body, "hi");
}

// Peak resident memory since the last call with true, in KiB.
size_t peak_kib(bool restart) {
    if (restart) std::ofstream("/proc/self/clear_refs") << "5";
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word)
        if (word == (restart ? "VmRSS:" : "VmHWM:")) {
            size_t kib = 0;
            status >> kib;
            return kib;
        }
    return 0;
}

TEST(HttpServer, EndlessExtensionsTrailersAndHeadersTakeNoMemory) {
    Server server;
    const std::string chunked = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    std::string trailer_lines, header_lines;
    for (int i = 0; i < 4'000; ++i) trailer_lines += "Trailer: value\r\n";
    const std::string noise(64 * limits::kib, 'x');
    for (const auto& [start, unit, status] :
         std::vector<std::tuple<std::string, std::string, std::string>>{{chunked + "1;a=", noise, "400"},
                                                                        {chunked + "5\r\nhello\r\n0\r\n", trailer_lines, "400"},
                                                                        {"GET / HTTP/1.1\r\nHost: localhost\r\n", trailer_lines, "431"},
                                                                        {"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", noise, "431"},
                                                                        {"GET /", noise, "414"},
                                                                        {"", std::string(64 * limits::kib, '\xee'), "400"}}) {
        const size_t before = peak_kib(true);
        Client client(server.port());
        client.send(start);
        size_t sent = 0;
        // 64 MiB are on offer; the server stops taking them after its linger limit at the latest.
        while (sent < 64 * limits::mib) {
            const size_t n = client.send(unit);
            sent += n;
            if (n < unit.size()) break;
        }
        const auto replies = parse_replies(client.read_all());
        if (!replies.empty()) { EXPECT_EQ(statuses(replies), status); }  // a client that goes on beyond the limit may see a reset instead
        EXPECT_LE(sent, 2 * limits::http_linger_bytes) << start;
#ifndef HEARTH_SANITIZED
        EXPECT_LE(peak_kib(false), before + 1'024) << start;
#endif
    }
    EXPECT_EQ(server.stats().requests, 0u);
    EXPECT_EQ(server.stats().refusals, 6u);
}

TEST(HttpServer, IdleConnectionsAreSmall) {
    Server server;
    std::vector<std::unique_ptr<Client>> clients;
    const auto open = [&](int n) {
        for (int i = 0; i < n; ++i) {
            clients.push_back(std::make_unique<Client>(server.port()));
            // A body of 50 KB on the way in, so that buffers had a reason to grow.
            clients.back()->send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n" + std::string(50'000, 'i'));
            EXPECT_EQ(clients.back()->read_one().status, 200);
        }
    };
    open(20);  // allocator and loop have what they keep
    peak_kib(true);
    const size_t before = peak_kib(true);
    open(350);
    const size_t after = peak_kib(true);
    EXPECT_EQ(server.active(), 370u);
#ifndef HEARTH_SANITIZED
    EXPECT_LE((after - std::min(before, after)) * 1'024 / 350, 16 * limits::kib);
    RecordProperty("idle_bytes_a_connection", std::to_string((after - std::min(before, after)) * 1'024 / 350));
#endif
}

TEST(HttpServer, StopsInOrder) {
    Server server;
    Client idle(server.port()), busy(server.port()), stream(server.port());
    idle.send(get("/"));
    EXPECT_EQ(idle.read_one().status, 200);
    busy.send(get("/wait"));
    stream.send(get("/stream"));
    EXPECT_TRUE(Server::within(1s, [&] { return server.stats().requests == 3; }));
    server.on_loop([&] {
        server.http().stop_accepting();
        server.http().close_idle();
        return 0;
    });
    EXPECT_EQ(idle.read_all(), "");
    Client late;
    EXPECT_FALSE(late.connect(server.port()));
    // The stream goes on to its end; its connection does not outlive it.
    const auto replies = parse_replies(stream.read_all());
    ASSERT_EQ(statuses(replies), "200");
    EXPECT_TRUE(replies[0].whole);
    EXPECT_EQ(server.on_loop([&] { return server.http().busy_connections(); }), 1u);
    server.on_loop([&] {
        server.http().close_all();
        return 0;
    });
    EXPECT_EQ(busy.read_all(), "");
    EXPECT_TRUE(Server::within(1s, [&] { return server.active() == 0; }));
    EXPECT_EQ(server.counts().clients_gone, 1);
}

}  // namespace
