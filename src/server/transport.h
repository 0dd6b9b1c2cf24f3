// The network seam: what a connection needs of a socket. The product has TcpTransport (tcp_transport.cpp); tests put
// boost::beast::test::stream behind it and let the n-th operation fail.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <string>

namespace server {

struct IoResult {
    boost::system::error_code error;
    size_t bytes = 0;
};

// One read and one write may be under way at the same time. Loop thread.
class Transport {
  public:
    virtual ~Transport() = default;
    // error::eof when the peer has sent its last byte.
    virtual boost::asio::awaitable<IoResult> read_some(boost::asio::mutable_buffer into) = 0;
    // Takes at least one byte of the two buffers or fails.
    virtual boost::asio::awaitable<IoResult> write_some(std::array<boost::asio::const_buffer, 2> from) = 0;
    // Whether the peer has sent its last byte or reset, seen past what is not read yet.
    virtual bool peer_has_ended() = 0;
    virtual void shutdown_send() = 0;
    // Pending operations end with an error. `reset`: at once, what is not sent yet is dropped.
    virtual void close(bool reset) = 0;
    virtual std::string remote() const = 0;  // "127.0.0.1:50000", "[::1]:50000"
};

}  // namespace server
