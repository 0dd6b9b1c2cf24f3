#include "server/tcp_transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/limits.h"
#include "base/message.h"

namespace server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class TcpTransport final : public Transport {
  public:
    TcpTransport(asio::ip::tcp::socket socket, const asio::ip::tcp::endpoint& peer) : socket_(std::move(socket)) {
        error_code ignored;
        socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
        socket_.set_option(asio::socket_base::keep_alive(true), ignored);
        // Else the kernel would take megabytes for a reader that has stopped before it told us to wait.
        const int unsent = static_cast<int>(limits::stream_buffer_bytes);
        ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
        auto address = peer.address();
        if (address.is_v6() && address.to_v6().is_v4_mapped()) address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
        const std::string host = address.to_string();
        remote_ = address.is_v6() ? base::cat('[', host, "]:", peer.port()) : base::cat(host, ':', peer.port());
    }

    asio::awaitable<IoResult> read_some(asio::mutable_buffer into) override {
        IoResult result;
        result.bytes = co_await socket_.async_read_some(into, asio::redirect_error(asio::use_awaitable, result.error));
        co_return result;
    }

    asio::awaitable<IoResult> write_some(std::array<asio::const_buffer, 2> from) override {
        IoResult result;
        result.bytes = co_await socket_.async_write_some(from, asio::redirect_error(asio::use_awaitable, result.error));
        co_return result;
    }

    bool peer_has_ended() override {
        if (!socket_.is_open()) return true;
        pollfd state{socket_.native_handle(), POLLRDHUP, 0};
        return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }

    void shutdown_send() override {
        error_code ignored;
        socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    }

    void close(bool reset) override {
        error_code ignored;
        if (!socket_.is_open()) return;
        if (reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
        socket_.close(ignored);
    }

    std::string remote() const override { return remote_; }

  private:
    asio::ip::tcp::socket socket_;
    std::string remote_;
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(asio::ip::tcp::socket socket, const asio::ip::tcp::endpoint& peer) {
    return std::make_unique<TcpTransport>(std::move(socket), peer);
}

}  // namespace server
