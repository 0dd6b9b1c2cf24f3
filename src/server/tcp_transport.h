// A TCP socket as a Transport.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "server/transport.h"

namespace server {

// TCP_NODELAY, SO_KEEPALIVE and a bound on unsent bytes are set here.
std::unique_ptr<Transport> make_tcp_transport(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer);

}  // namespace server
