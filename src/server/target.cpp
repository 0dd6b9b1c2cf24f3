// Request targets: which forms are taken (RFC 9112 3.2) and the path in its one decoded form.
#include "base/utf8.h"
#include "server/gate.h"
#include "server/host_check.h"

namespace server {
namespace {

base::Error bad(std::string message) { return {base::ErrorCode::invalid_argument, std::move(message), ""}; }

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

base::Result<std::string> decode_path(std::string_view raw) {
    std::string path;
    path.reserve(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '%') {
            path += raw[i];
            continue;
        }
        const int high = i + 1 < raw.size() ? hex_digit(raw[i + 1]) : -1;
        const int low = i + 2 < raw.size() ? hex_digit(raw[i + 2]) : -1;
        if (high < 0 || low < 0) return bad("request path has a '%' that is not followed by two hexadecimal digits");
        path += static_cast<char>(high << 4 | low);
        i += 2;
    }
    for (const char c : path)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return bad("request path has an encoded control byte");
    if (base::utf8::valid_prefix(path) != path.size())  // also "%c0%ae" and other overlong forms
        return bad("request path is not UTF-8");
    // Segments "." and ".." are refused rather than resolved: no client of an API needs them.
    for (size_t begin = 1; begin <= path.size();) {
        const size_t end = std::min(path.find('/', begin), path.size());
        const std::string_view segment = std::string_view(path).substr(begin, end - begin);
        if (segment == "." || segment == "..") return bad("request path has a dot segment");
        begin = end + 1;
    }
    return path;
}

}  // namespace

base::Result<Target> parse_target(std::string_view target, std::string_view method) {
    Target result;
    if (target == "*") {
        if (method != "OPTIONS") return bad("request target '*' is for OPTIONS");
        result.path = "*";
        return result;
    }
    const auto starts_with = [&](std::string_view prefix) {
        for (size_t i = 0; i < prefix.size(); ++i)
            if (i >= target.size() || (target[i] | 0x20) != (prefix[i] | 0x20)) return false;
        return true;
    };
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!starts_with(scheme)) continue;
        target.remove_prefix(scheme.size());
        const size_t end = std::min(target.find_first_of("/?"), target.size());
        result.authority = target.substr(0, end);
        if (!parse_authority(result.authority)) return bad("request target's host is not HOST or HOST:PORT");
        target.remove_prefix(end);
        break;
    }
    if (result.authority.empty() && (target.empty() || target.front() != '/')) return bad("request target does not begin with '/'");
    const size_t question = std::min(target.find('?'), target.size());
    const std::string_view raw_path = target.substr(0, question);
    result.query = target.substr(std::min(question + 1, target.size()));
    if (raw_path.find_first_of("\"<>#\\^`{|}") != std::string_view::npos)
        return bad("request path has a character that must be percent-encoded");
    // Browsers leave ^ ` { | } and \ as they are in queries.
    if (result.query.find_first_of("\"<>#") != std::string::npos) return bad("request query has a character that must be percent-encoded");
    base::Result<std::string> path = decode_path(raw_path.empty() ? "/" : raw_path);
    if (!path) return path.take_error();
    result.path = std::move(path).value();
    return result;
}

}  // namespace server
