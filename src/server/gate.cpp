#include "server/gate.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>

#include "base/ascii.h"
#include "server/host_check.h"

namespace server {
namespace {

bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return is_token_char(static_cast<unsigned char>(c)); });
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return base::lower(x) == base::lower(y); });
}

bool list_has(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        if (equals_ignoring_case(trim(list.substr(0, comma)), word)) return true;
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return false;
}

enum class Method { served, refused, unknown };

Method classify(std::string_view method) {
    for (const std::string_view known : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
        if (method == known) return Method::served;
    for (const std::string_view known : {"CONNECT", "TRACE"})
        if (method == known) return Method::refused;
    return Method::unknown;
}

// Headers of which a second one would leave it open which counts.
constexpr std::string_view once[] = {"host",   "content-length", "transfer-encoding", "authorization", "x-api-key", "content-type",
                                     "origin", "expect"};

// A name that some proxy or gateway takes for a framing header: "Transfer_Encoding", "Content--Length".
bool imitates_framing(std::string_view lower_name) {
    std::string plain;
    for (const char c : lower_name) {
        const char mapped = c == '_' ? '-' : c;
        if (mapped != '-' || plain.empty() || plain.back() != '-') plain += mapped;
    }
    return (plain == "transfer-encoding" || plain == "content-length") && plain != lower_name;
}

// Only digits, and a value below 2^63. nullopt otherwise: "+5", "0x5", "5, 5", "-1", "", 2^63.
std::optional<uint64_t> parse_length(std::string_view text) {
    if (text.empty() || text.size() > 20) return std::nullopt;
    uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        const auto digit = static_cast<uint64_t>(c - '0');
        if (value > (static_cast<uint64_t>(INT64_MAX) - digit) / 10) return std::nullopt;
        value = value * 10 + digit;
    }
    return value;
}

std::string_view code_of(unsigned status) {
    switch (status) {
        case 405:
        case 501: return "method_not_allowed";
        case 413: return "body_too_large";
        case 414: return "uri_too_long";
        case 417: return "expectation_failed";
        case 431: return "headers_too_large";
        case 505: return "http_version_not_supported";
        default: return "malformed_request";
    }
}

}  // namespace

bool is_token_char(unsigned char c) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
    return c < 0x80 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

bool is_value_char(unsigned char c) { return c == '\t' || (c >= 0x20 && c != 0x7f); }

std::string_view Head::header(std::string_view lower_name) const {
    for (const auto& [name, value] : headers)
        if (name == lower_name) return value;
    return {};
}

bool valid_field_line(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
    return std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon), line.end(),
                       [](char c) { return is_value_char(static_cast<unsigned char>(c)); });
}

GateState HeadGate::refuse(unsigned status, std::string message) {
    refusal_ = {status, std::move(message), std::string(code_of(status))};
    return state_ = GateState::refused;
}

GateState HeadGate::scan(std::string_view bytes) {
    if (state_ != GateState::more) return state_;
    while (scanned_ < bytes.size()) {
        const auto c = static_cast<unsigned char>(bytes[scanned_]);
        if (scanned_ >= limits_.header_bytes)
            return refuse(431, "request line and headers exceed " + std::to_string(limits_.header_bytes) + " bytes");
        if (c == '\r') {
            if (scanned_ + 1 == bytes.size()) return state_;  // its line feed is not here yet; look again then
            if (bytes[scanned_ + 1] != '\n') return refuse(400, "carriage return without line feed in the request head");
            const std::string_view line = bytes.substr(line_begin_, scanned_ - line_begin_);
            scanned_ += 2;
            const size_t line_begin = std::exchange(line_begin_, scanned_);
            if (!in_fields_ && line.empty()) {
                // 2.2: one empty line before the request line is passed over; more is no HTTP client.
                if (line_begin != 0) return refuse(400, "empty lines before the request line");
                skip_ = 2;
                continue;
            }
            if (!in_fields_) {
                if (!request_line(line)) return state_;
                in_fields_ = true;
            } else if (line.empty()) {
                if (!finish()) return state_;
                return state_ = GateState::complete;
            } else if (!field_line(line)) {
                return state_;
            }
            continue;
        }
        if (c == '\n') return refuse(400, "line feed without carriage return in the request head");
        if (!in_fields_) {
            if (c != ' ' && (c < 0x21 || c > 0x7e)) return refuse(400, "byte in the request line that is not printable ASCII");
            // Longest method, two blanks and the version beside the target.
            if (scanned_ - line_begin_ > limits_.target_bytes + 32)
                return refuse(414, "request target exceeds " + std::to_string(limits_.target_bytes) + " bytes");
        } else {
            if (!is_value_char(c)) return refuse(400, "control byte in a header");
            if (scanned_ == line_begin_ && (c == ' ' || c == '\t'))
                return refuse(400, "header line that begins with a blank (obsolete folding)");
        }
        ++scanned_;
    }
    return state_;
}

bool HeadGate::request_line(std::string_view line) {
    const size_t first = line.find(' ');
    const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
    if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
        refuse(400, "request line is not METHOD TARGET VERSION with single blanks");
        return false;
    }
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, second - first - 1);
    const std::string_view version = line.substr(second + 1);
    if (!is_token(method)) {
        refuse(400, "method is not a token");
        return false;
    }
    const auto digit = [&](size_t at) { return version[at] >= '0' && version[at] <= '9'; };
    if (version.size() != 8 || version.substr(0, 5) != "HTTP/" || !digit(5) || version[6] != '.' || !digit(7)) {
        refuse(400, "HTTP version is not HTTP/1.1 or HTTP/1.0");
        return false;
    }
    if (version != "HTTP/1.1" && version != "HTTP/1.0") {
        refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
        return false;
    }
    if (target.size() > limits_.target_bytes) {
        refuse(414, "request target exceeds " + std::to_string(limits_.target_bytes) + " bytes");
        return false;
    }
    switch (classify(method)) {
        case Method::unknown: refuse(501, "method is not known here"); return false;
        case Method::refused: refuse(405, "method " + std::string(method) + " is not allowed"); return false;
        case Method::served: break;
    }
    base::Result<Target> parsed = parse_target(target, method);
    if (!parsed) {
        refuse(400, parsed.take_error().message);
        return false;
    }
    head_.method = method;
    head_.target = target;
    head_.path = std::move(parsed.value().path);
    head_.query = std::move(parsed.value().query);
    head_.host = std::move(parsed.value().authority);
    head_.version_minor = version[7] - '0';
    return true;
}

bool HeadGate::field_line(std::string_view line) {
    if (!valid_field_line(line)) {
        refuse(400, "header line is not NAME: VALUE");
        return false;
    }
    if (head_.headers.size() == limits_.headers_count) {
        refuse(431, "more than " + std::to_string(limits_.headers_count) + " headers");
        return false;
    }
    const size_t colon = line.find(':');
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(), base::lower);
    if (imitates_framing(name)) {
        refuse(400, "header name imitates Transfer-Encoding or Content-Length");
        return false;
    }
    if (std::find(std::begin(once), std::end(once), name) != std::end(once)) {
        for (const auto& [other, value] : head_.headers)
            if (other == name) {
                refuse(400, "more than one " + name + " header");
                return false;
            }
    }
    head_.headers.emplace_back(std::move(name), trim(line.substr(colon + 1)));
    return true;
}

bool HeadGate::finish() {
    const auto fail = [&](unsigned status, std::string message) {
        refuse(status, std::move(message));
        return false;
    };
    const std::string* host = nullptr;
    const std::string* coding = nullptr;
    const std::string* length = nullptr;
    const std::string* expect = nullptr;
    bool close = false;
    for (const auto& [name, value] : head_.headers) {
        if (name == "host")
            host = &value;
        else if (name == "transfer-encoding")
            coding = &value;
        else if (name == "content-length")
            length = &value;
        else if (name == "expect")
            expect = &value;
        else if (name == "connection" || name == "proxy-connection")
            close = close || list_has(value, "close");
    }
    // 9112 3.2: HTTP/1.1 needs exactly one valid Host.
    if (!host && head_.version_minor == 1) return fail(400, "Host header is missing");
    if (host) {
        if (!parse_authority(*host)) return fail(400, "Host header is not HOST or HOST:PORT");
        // 3.2.2: the authority of an absolute target rules; a Host that says otherwise is an attack or an accident.
        if (!head_.host.empty() && !equals_ignoring_case(head_.host, *host))
            return fail(400, "Host header differs from the request target's host");
        head_.host = *host;
    }
    if (coding) {
        if (length) return fail(400, "Transfer-Encoding together with Content-Length");
        if (head_.version_minor == 0) return fail(400, "Transfer-Encoding in HTTP/1.0");
        if (!equals_ignoring_case(*coding, "chunked")) return fail(400, "Transfer-Encoding other than chunked");
        head_.chunked = true;
    }
    if (length) {
        head_.content_length = parse_length(*length);
        if (!head_.content_length) return fail(400, "Content-Length is not a number");
        if (*head_.content_length > limits_.body_bytes)
            return fail(413, "body of " + std::to_string(*head_.content_length) + " bytes exceeds " + std::to_string(limits_.body_bytes) + " (--max-body)");
    }
    // 9110 9.3.1: a body of GET means nothing, and a party that overlooks it takes it for the next request.
    if (head_.has_body() && (head_.method == "GET" || head_.method == "HEAD")) return fail(400, head_.method + " with a body");
    if (expect && head_.version_minor == 1) {
        if (!equals_ignoring_case(*expect, "100-continue")) return fail(417, "Expect other than 100-continue");
        head_.expect_continue = true;
    }
    // HTTP/1.0 is answered and closed, whatever it asks: its keep-alive is no standard.
    head_.keep_alive = head_.version_minor == 1 && !close;
    return true;
}

std::optional<Refusal> check_parsed(const Head& head, const BeastParser& parser) {
    const auto& message = parser.get();
    const auto view = [](auto s) { return std::string_view(s.data(), s.size()); };
    const auto differs = [](std::string_view what) {
        return Refusal{400, "request is ambiguous: two readings of its " + std::string(what) + " differ", "malformed_request"};
    };
    if (view(message.method_string()) != head.method || view(message.target()) != head.target) return differs("request line");
    if (message.version() != 10u + static_cast<unsigned>(head.version_minor)) return differs("version");
    if (static_cast<size_t>(std::distance(message.begin(), message.end())) != head.headers.size()) return differs("headers");
    for (const auto& [name, value] : head.headers) {
        const auto range = message.equal_range(name);
        const std::string_view wanted = value;
        if (std::none_of(range.first, range.second, [&](const auto& field) { return view(field.value()) == wanted; }))
            return differs("headers");
    }
    if (parser.chunked() != head.chunked) return differs("transfer coding");
    const auto length = parser.content_length();
    if (length.has_value() != head.content_length.has_value() || (length && *length != *head.content_length)) return differs("length");
    if (head.keep_alive && !parser.keep_alive()) return differs("connection options");
    return std::nullopt;
}

}  // namespace server
