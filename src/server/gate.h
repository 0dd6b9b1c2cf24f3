// The strict HTTP/1.1 gate. Beast's parser in Boost 1.81 takes several forms that two parties can read differently
// (unknown transfer codings, a coding together with a length, folded lines, two Hosts) and does not bound chunk
// extensions and trailers; so raw bytes pass here first, then Beast parses them, and both must agree (check_parsed).
// Everything here is pure: bytes in, verdict out. RFC 9112 and RFC 9110 are meant by section numbers.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/error_shape.h"
#include "server/http_options.h"

namespace server {

// A request line and headers that passed.
struct Head {
    std::string method;
    std::string target;  // as sent
    std::string path;    // percent-decoded; "*" for the server itself (OPTIONS only)
    std::string query;   // raw
    std::string host;    // as sent; empty only for HTTP/1.0 without Host
    int version_minor = 1;
    bool keep_alive = true;
    bool chunked = false;
    bool expect_continue = false;
    std::optional<uint64_t> content_length;
    std::vector<std::pair<std::string, std::string>> headers;  // names in lower case, in order
    std::string_view header(std::string_view lower_name) const;
    bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

enum class GateState { more, complete, refused };

// Reads one head as its bytes come in. Call scan with all bytes since the end of the last message, the earlier ones
// unchanged; each byte is looked at once. A fault is reported at the byte that makes it one, so garbage is
// answered without waiting for a line to end.
class HeadGate {
  public:
    explicit HeadGate(const HttpLimits& limits) : limits_(limits) {}
    GateState scan(std::string_view bytes);
    // After complete: bytes of the head, [skip_bytes, head_bytes) being what Beast is to parse.
    size_t head_bytes() const { return line_begin_; }
    size_t skip_bytes() const { return skip_; }
    const Head& head() const { return head_; }
    Head take_head() { return std::move(head_); }
    const Refusal& refusal() const { return refusal_; }

  private:
    GateState refuse(unsigned status, std::string message);
    bool request_line(std::string_view line);
    bool field_line(std::string_view line);
    bool finish();

    const HttpLimits& limits_;
    Head head_;
    Refusal refusal_;
    GateState state_ = GateState::more;
    size_t skip_ = 0;        // 2 when an empty line came before the request line
    size_t line_begin_ = 0;  // of the line being read
    size_t scanned_ = 0;     // bytes [0, scanned_) are checked
    bool in_fields_ = false;
};

// Walks over the framing of a chunked body before Beast decodes it: sizes, extensions, trailers, line ends.
class ChunkGate {
  public:
    // `body_bytes_max`: over it 413.
    explicit ChunkGate(size_t body_bytes_max) : body_bytes_max_(body_bytes_max) {}
    // Looks at the next bytes of the stream; `used` is how many of them belong to this body.
    GateState feed(std::string_view bytes, size_t& used);
    // How many of the bytes used last belong to framing that is not whole yet (a size line, the trailers). Beast must not
    // see them: fed "0\r\n" and then one byte more, its 1.81 breaks an assertion of its own, which ends the process.
    size_t pending_bytes() const { return pending_bytes_; }
    // Of the body without its framing, as far as the size lines have announced it.
    uint64_t body_bytes() const { return body_bytes_; }
    const Refusal& refusal() const { return refusal_; }

  private:
    // In an extension: ";" name [ "=" ( token / quoted-string ) ], without blanks.
    enum class Where {
        size,
        name_begin,
        name,
        value_begin,
        value,
        quoted,
        quoted_pair,
        quoted_end,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailer,
        trailer_lf
    };
    GateState refuse(unsigned status, std::string message);
    bool step(unsigned char c);
    bool extension_step(unsigned char c);

    size_t body_bytes_max_;
    Refusal refusal_;
    Where where_ = Where::size;
    bool done_ = false;
    uint64_t size_ = 0;  // of the current chunk
    uint64_t left_ = 0;  // of its data
    uint64_t body_bytes_ = 0;  // of the chunks whose size lines have come
    size_t digits_ = 0;
    size_t line_bytes_ = 0;
    size_t extension_bytes_ = 0;
    size_t trailer_bytes_ = 0;
    size_t pending_bytes_ = 0;
    std::string trailer_line_;
};

// tchar of RFC 9110 5.6.2; field content: HTAB, SP, visible, and bytes from 0x80 up (obs-text: UTF-8 in User-Agent).
bool is_token_char(unsigned char c);
bool is_value_char(unsigned char c);
// Whether a field line is well formed: token ":" value without control bytes. Shared with trailers.
bool valid_field_line(std::string_view line);

// Splits and decodes a request target into path and query (and the authority of an absolute form).
struct Target {
    std::string path;
    std::string query;
    std::string authority;
};
base::Result<Target> parse_target(std::string_view target, std::string_view method);

using BeastParser = boost::beast::http::request_parser<boost::beast::http::string_body>;
// Both readings of one head must be the same; nullopt when they are.
std::optional<Refusal> check_parsed(const Head& head, const BeastParser& parser);

}  // namespace server
