// What the connections of a server share, and the small pure decisions about options and ids.
#include <sys/random.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.h"
#include "base/message.h"
#include "base/mix.h"
#include "server/connection.h"

namespace server {

HttpShared::HttpShared(HttpOptions options_in, Handler handler_in, const base::Clock& clock_in, const boost::asio::ip::address& bound)
    : options(std::move(options_in)),
      handler(std::move(handler_in)),
      clock(clock_in),
      host_check(bound, options.hosts),
      cors(options.cors_origins),
      id_state_(static_cast<uint64_t>(clock_in.now_ns())) {
    // Ids of two runs should not meet in a log; that needs no more than a start from somewhere else.
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) id_state_ = seed;
}

std::string HttpShared::new_request_id() {
    return "req_" + base::hex16(base::next_mixed(id_state_));
}

bool BodyHold::grow_to(size_t bytes) {
    if (bytes <= held_bytes_) return true;
    const size_t others = shared_.bodies_bytes - held_bytes_, most = std::max(shared_.options.limits.bodies_bytes, shared_.options.limits.body_bytes);
    if (bytes > most - others) return false;  // others <= most: every hold came this way
    shared_.bodies_bytes = others + bytes;
    held_bytes_ = bytes;
    return true;
}

bool clean_request_id(std::string_view id) {
    return !id.empty() && id.size() <= limits::http_request_id_bytes && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("._~:/+=@-").find(c) != std::string_view::npos;
    });
}

base::Result<void> check_bind(std::string_view address, bool has_keys, bool insecure) {
    boost::system::error_code ec;
    const auto parsed = boost::asio::ip::make_address(address == "localhost" ? "127.0.0.1" : std::string(address), ec);
    if (ec)
        return base::Error{base::ErrorCode::invalid_argument,
                           base::cat("host ", base::printable(address), " is not an IPv4 or IPv6 address"), "host"};
    bool loopback = parsed.is_loopback();
    if (parsed.is_v6() && parsed.to_v6().is_v4_mapped())
        loopback = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, parsed.to_v6()).is_loopback();
    if (loopback || has_keys || insecure) return {};
    return base::Error{base::ErrorCode::invalid_argument,
                       base::cat("host ", base::printable(address),
                                 " can be reached from other machines: give --api-key-file, or --insecure to serve anyone"),
                       "host"};
}

}  // namespace server
