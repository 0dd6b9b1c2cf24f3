#include "server/host_check.h"

#include <algorithm>

#include "base/ascii.h"

namespace server {
namespace {

using boost::asio::ip::address;

address unmapped(const address& a) {
    if (a.is_v6() && a.to_v6().is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, a.to_v6());
    return a;
}

bool is_link_local(const address& a) { return a.is_v4() ? (a.to_v4().to_uint() >> 16) == 0xa9fe : a.to_v6().is_link_local(); }

// A DNS name: labels of letters, digits, '-' and '_' (seen in container names), 253 bytes in all.
bool is_name(std::string_view name) {
    if (name.empty() || name.size() > 253) return false;
    size_t label = 0;
    for (const char c : name) {
        if (c == '.') {
            if (label == 0) return false;
            label = 0;
            continue;
        }
        const char l = base::lower(c);
        if (!((l >= 'a' && l <= 'z') || (l >= '0' && l <= '9') || l == '-' || l == '_') || ++label > 63) return false;
    }
    return label > 0;
}

}  // namespace

std::optional<Authority> parse_authority(std::string_view text) {
    Authority result;
    std::string_view host, port;
    bool has_port = false;
    if (!text.empty() && text.front() == '[') {
        const size_t end = text.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        host = text.substr(1, end - 1);
        std::string_view rest = text.substr(end + 1);
        if (!rest.empty()) {
            if (rest.front() != ':') return std::nullopt;
            has_port = true;
            port = rest.substr(1);
        }
        // No zone ("%eth0"): it means nothing to another machine.
        boost::system::error_code ec;
        const auto v6 = host.find('%') == std::string_view::npos && host.size() <= 45
                            ? boost::asio::ip::make_address_v6(std::string(host), ec)
                            : (ec = boost::asio::error::invalid_argument, boost::asio::ip::address_v6());
        if (ec) return std::nullopt;
        result.address = unmapped(v6);
        result.host = base::to_lower(host);
    } else {
        const size_t colon = text.find(':');
        host = text.substr(0, colon);
        if (colon != std::string_view::npos) {
            has_port = true;
            port = text.substr(colon + 1);
        }
        if (!host.empty() && host.back() == '.') host.remove_suffix(1);
        if (!is_name(host)) return std::nullopt;
        result.host = base::to_lower(host);
        boost::system::error_code ec;
        const auto v4 = boost::asio::ip::make_address_v4(result.host, ec);
        if (!ec) result.address = v4;
    }
    if (has_port && !port.empty()) {
        uint32_t value = 0;
        if (port.size() > 5) return std::nullopt;
        for (const char c : port) {
            if (c < '0' || c > '9') return std::nullopt;
            value = value * 10 + static_cast<uint32_t>(c - '0');
        }
        if (value > 65'535) return std::nullopt;
        result.port = static_cast<uint16_t>(value);
    }
    return result;
}

HostCheck::HostCheck(const address& bound, const std::vector<std::string>& names) : bound_(unmapped(bound)) {
    for (const std::string& name : names) {
        if (name == "*")
            all_ = true;
        else if (const auto parsed = parse_authority(name))
            names_.push_back(parsed->host);
        else if (const auto literal = parse_authority("[" + name + "]"))
            names_.push_back(literal->host);
    }
}

bool HostCheck::allows(const Authority& host) const {
    if (all_ || host.host == "localhost") return true;
    if (std::find(names_.begin(), names_.end(), host.host) != names_.end()) return true;
    if (!host.address) return false;
    const address& a = *host.address;
    if (a.is_loopback() || a == bound_) return !a.is_unspecified();
    return bound_.is_unspecified() && !a.is_unspecified() && !is_link_local(a) && !a.is_multicast();
}

bool HostCheck::same_origin(std::string_view origin, const Authority& host) {
    const size_t scheme_end = origin.find("://");
    if (scheme_end == std::string_view::npos) return false;
    const std::string scheme = base::to_lower(origin.substr(0, scheme_end));
    if (scheme != "http" && scheme != "https") return false;
    const auto from = parse_authority(origin.substr(scheme_end + 3));
    if (!from || from->host != host.host) return false;
    // Behind a proxy that ends TLS the scheme is not ours to know: the default port of the origin's scheme counts for both.
    const uint16_t standard = scheme == "https" ? 443 : 80;
    return from->port.value_or(standard) == host.port.value_or(standard);
}

}  // namespace server
