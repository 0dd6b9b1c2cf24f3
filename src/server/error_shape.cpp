#include "server/error_shape.h"

namespace server {
namespace {

void append_quoted(std::string& out, std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    out += '"';
    for (const char ch : text) {
        const auto c = static_cast<unsigned char>(ch);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += ch;
        } else if (c >= 0x20 && c < 0x7f) {
            out += ch;
        } else {
            // Bytes of the request may be quoted in a message; as Latin-1 escapes they are valid JSON whatever they were.
            out += "\\u00";
            out += hex[c >> 4];
            out += hex[c & 15];
        }
    }
    out += '"';
}

void append_or_null(std::string& out, std::string_view text) {
    if (text.empty())
        out += "null";
    else
        append_quoted(out, text);
}

}  // namespace

std::string_view error_type(unsigned status) { return status >= 500 ? "server_error" : "invalid_request_error"; }

std::string error_json(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
    std::string out = "{\"error\":{\"message\":";
    append_quoted(out, message);
    out += ",\"type\":";
    append_quoted(out, type);
    out += ",\"param\":";
    append_or_null(out, param);
    out += ",\"code\":";
    append_or_null(out, code);
    out += "}}";
    return out;
}

HttpResponse error_response(unsigned status, std::string_view message, std::string_view code) {
    HttpResponse response;
    response.status = status;
    response.body = error_json(message, error_type(status), {}, code);
    return response;
}

}  // namespace server
