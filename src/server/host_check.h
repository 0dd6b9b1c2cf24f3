// Who a request says it talks to (Host) and which page sent it (Origin). Against DNS rebinding: a page on evil.com
// whose name is made to resolve to 127.0.0.1 still sends "Host: evil.com", so only known names are answered.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// HOST[:PORT] taken apart: the host in lower case, one trailing dot and the brackets of IPv6 removed.
struct Authority {
    std::string host;
    std::optional<boost::asio::ip::address> address;  // when the host is an IP literal; v4-mapped ones as IPv4
    std::optional<uint16_t> port;
};
// nullopt when it is not of that form. Pure.
std::optional<Authority> parse_authority(std::string_view text);

class HostCheck {
  public:
    // `bound`: the listener's address. `names`: further hosts as configured (a port in them is ignored), "*" for all.
    HostCheck(const boost::asio::ip::address& bound, const std::vector<std::string>& names);

    // Loopback names and addresses, the bound address and the configured names. When all addresses are bound, every IP
    // literal except link-local: a literal can't be rebound, only a name can.
    bool allows(const Authority& host) const;

    // Whether `origin` ("http://host:port") is the page served under this Host. "null" and anything malformed is not.
    static bool same_origin(std::string_view origin, const Authority& host);

  private:
    boost::asio::ip::address bound_;
    std::vector<std::string> names_;
    bool all_ = false;
};

}  // namespace server
