#include "server/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/message.h"
#include "server/tcp_transport.h"

namespace server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// A descriptor that is closed when it goes away.
class Descriptor {
  public:
    explicit Descriptor(int fd = -1) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~Descriptor() { reset(); }
    int get() const { return fd_; }
    bool valid() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

  private:
    int fd_;
};

Descriptor open_reserve() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Says no to a connection over the cap, then reads and drops for a moment so that the answer arrives.
asio::awaitable<void> turn_away(std::unique_ptr<Transport> accepted, asio::any_io_executor executor, std::shared_ptr<size_t> count) {
    static const std::string answer = [] {
        const std::string body =
            error_json("the server has its full number of connections; try again", "server_error", {}, "too_many_connections");
        return "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\nRetry-After: 1\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n" + body;
    }();
    // Given back on every way out: a place lost would be lost for ever.
    struct Place {
        std::shared_ptr<size_t> count;
        explicit Place(std::shared_ptr<size_t> c) : count(std::move(c)) { ++*count; }
        ~Place() { --*count; }
    } const place(std::move(count));
    // Shared with the timer: its handler may already be queued when this coroutine ends.
    const std::shared_ptr<Transport> transport = std::move(accepted);
    asio::steady_timer timer(executor);
    timer.expires_after(std::chrono::seconds(1));
    timer.async_wait([weak = std::weak_ptr<Transport>(transport)](const error_code& error) {
        if (const auto alive = weak.lock(); alive && !error) alive->close(true);
    });
    const std::array<asio::const_buffer, 2> buffers = {asio::buffer(answer), asio::const_buffer()};
    IoResult result = co_await transport->write_some(buffers);
    transport->shutdown_send();
    std::array<char, 1024> dropped;
    size_t dropped_bytes = 0;
    while (!result.error && dropped_bytes < 64 * limits::kib) {
        result = co_await transport->read_some(asio::buffer(dropped));
        dropped_bytes += result.bytes;
    }
    timer.cancel();
    transport->close(false);
}

}  // namespace

class HttpServer::Acceptor : public std::enable_shared_from_this<HttpServer::Acceptor> {
  public:
    Acceptor(asio::io_context& io, std::shared_ptr<HttpShared> shared, tcp protocol, int fd)
        : io_(io), shared_(std::move(shared)), protocol_(protocol), acceptor_(io), backoff_timer_(io), reserve_(open_reserve()) {
        acceptor_.assign(protocol, fd);
    }

    void start() {
        asio::co_spawn(io_, accept_loop(), [self = shared_from_this()](const std::exception_ptr& failure) {
            if (failure) self->shared_->options.log("accepting connections ended by an exception");
        });
    }

    void stop() {
        error_code ignored;
        stopped_ = true;
        acceptor_.close(ignored);
        backoff_timer_.cancel();
    }

  private:
    asio::awaitable<void> accept_loop() {
        error_code error;
        while (!stopped_) {
            co_await acceptor_.async_wait(tcp::acceptor::wait_read, asio::redirect_error(asio::use_awaitable, error));
            if (stopped_ || error == asio::error::operation_aborted) co_return;
            // Some at a time, so that a flood of connections leaves the loop its other work.
            for (int i = 0; i < 16 && !stopped_; ++i) {
                sockaddr_storage address{};
                socklen_t length = sizeof address;
                // Not Asio's accept: that one leaves the descriptor open to children between accept and fcntl.
                Descriptor fd(
                    ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
                if (fd.valid()) {
                    backoff_ms_ = 0;
                    take(std::move(fd), address, length);
                    continue;
                }
                const int code = errno;
                if (code == EAGAIN || code == EWOULDBLOCK) break;
                if (code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM) {
                    no_descriptors(code);
                    error_code ignored;
                    backoff_timer_.expires_after(std::chrono::milliseconds(backoff_ms_));
                    co_await backoff_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
                    break;
                }
                // ECONNABORTED and the network's own errors concern one connection that is gone already.
            }
        }
    }

    // Out of descriptors: the connection would stay ready and the loop spin. A reserve descriptor makes room to take one
    // client and close it, and each time there is a longer pause.
    void no_descriptors(int code) {
        ++shared_->stats.accept_failures;
        const int64_t now = shared_->clock.now_ns();
        if (logged_ns_ == 0 || now - logged_ns_ >= 1'000'000'000) {
            logged_ns_ = now;
            shared_->options.log(base::cat("cannot accept connections: ", std::strerror(code)));
        }
        if (reserve_.valid()) {
            reserve_.reset();
            Descriptor dropped(::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        }
        reserve_ = open_reserve();
        backoff_ms_ = std::clamp<int64_t>(backoff_ms_ * 2, limits::http_accept_backoff_min_ms, limits::http_accept_backoff_max_ms);
    }

    void take(Descriptor fd, const sockaddr_storage& address, socklen_t length) {
        tcp::endpoint peer;
        if (length <= peer.capacity()) {
            std::memcpy(peer.data(), &address, length);
            peer.resize(length);
        }
        tcp::socket socket(io_);
        error_code error;
        socket.assign(protocol_, fd.get(), error);
        if (error) return;
        fd.release();
        auto transport = make_tcp_transport(std::move(socket), peer);
        if (shared_->connections.size() >= shared_->options.limits.connections_count && !make_room()) {
            ++shared_->stats.connections_over_cap;
            if (*turned_away_ < limits::http_overflow_connections)
                asio::co_spawn(io_, turn_away(std::move(transport), io_.get_executor(), turned_away_), [](const std::exception_ptr&) {});
            return;
        }
        ++shared_->stats.connections_accepted;
        std::make_shared<Connection>(shared_, std::move(transport), io_.get_executor())->start();
    }

    // At the cap the connection that has waited longest for a whole request head gives way: else one client with open and
    // silent connections would shut out everybody, health checks included. false: all are at work.
    bool make_room() {
        Connection* longest = nullptr;
        for (Connection* connection : shared_->connections)
            if (connection->may_make_room() && (!longest || connection->wait_number() < longest->wait_number())) longest = connection;
        if (!longest) return false;
        ++shared_->stats.connections_made_room;
        longest->abort();
        return true;
    }

    asio::io_context& io_;
    const std::shared_ptr<HttpShared> shared_;
    const tcp protocol_;
    tcp::acceptor acceptor_;
    asio::steady_timer backoff_timer_;
    Descriptor reserve_;
    std::shared_ptr<size_t> turned_away_ = std::make_shared<size_t>(0);  // being told so right now
    int64_t backoff_ms_ = 0;
    int64_t logged_ns_ = 0;
    bool stopped_ = false;
};

HttpServer::HttpServer(asio::io_context& io, HttpOptions options, Handler handler, const base::Clock& clock)
    : io_(io), options_(std::move(options)), handler_(std::move(handler)), clock_(clock) {}

HttpServer::~HttpServer() {
    stop_accepting();
    close_all();
}

base::Result<uint16_t> HttpServer::start() {
    CHECK(!shared_);
    if (base::Result<void> allowed = check_bind(options_.address, !options_.keys.empty(), options_.insecure); !allowed)
        return allowed.take_error();
    std::signal(SIGPIPE, SIG_IGN);
    const auto address = asio::ip::make_address(options_.address == "localhost" ? "127.0.0.1" : options_.address);
    const tcp::endpoint wanted(address, options_.port);
    const auto failed = [&](std::string_view what) -> base::Error {
        const int code = errno;
        return {base::ErrorCode::io,
                base::cat("cannot ", what, " ", base::printable(options_.address), " port ", options_.port, ": ", std::strerror(code),
                          code == EADDRINUSE ? " (--port takes another one, 0 any free one)" : ""),
                "port"};
    };
    Descriptor fd(::socket(wanted.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
    if (!fd.valid()) return failed("open a socket for");
    const int on = 1, off = 0;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // "::" takes IPv4 as well, whatever the system's default is.
    if (address.is_v6()) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(fd.get(), wanted.data(), static_cast<socklen_t>(wanted.size())) != 0) return failed("bind");
    if (::listen(fd.get(), SOMAXCONN) != 0) return failed("listen on");
    tcp::endpoint bound;
    auto length = static_cast<socklen_t>(bound.capacity());
    if (::getsockname(fd.get(), bound.data(), &length) != 0) return failed("look up");
    bound.resize(length);
    shared_ = std::make_shared<HttpShared>(std::move(options_), std::move(handler_), clock_, address);
    acceptor_ = std::make_shared<Acceptor>(io_, shared_, wanted.protocol(), fd.release());
    acceptor_->start();
    return bound.port();
}

void HttpServer::stop_accepting() {
    if (acceptor_) acceptor_->stop();
}

void HttpServer::close_idle() {
    if (!shared_) return;
    shared_->draining = true;
    const std::vector<Connection*> all(shared_->connections.begin(), shared_->connections.end());
    for (Connection* connection : all) connection->close_if_idle();
}

void HttpServer::close_all() {
    if (!shared_) return;
    shared_->draining = true;
    // A handler's callback may end other connections; hold them all while walking.
    std::vector<std::shared_ptr<Connection>> all;
    for (Connection* connection : shared_->connections) all.push_back(connection->shared_from_this());
    for (const auto& connection : all) connection->abort();
}

size_t HttpServer::active_connections() const { return shared_ ? shared_->connections.size() : 0; }

size_t HttpServer::busy_connections() const {
    if (!shared_) return 0;
    const auto& all = shared_->connections;
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const Connection* connection) { return connection->busy(); }));
}

const HttpStats& HttpServer::stats() const { return shared_ ? shared_->stats : no_stats_; }

}  // namespace server
