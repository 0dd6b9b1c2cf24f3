// A TCP socket as a Transport.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "server/transport.h"

namespace server {

// TCP_NODELAY, SO_KEEPALIVE and a bound on unsent bytes are set here.
std::unique_ptr<Transport> make_tcp_transport(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);

}  // namespace server
