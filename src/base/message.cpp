#include "base/message.h"

#include "base/utf8.h"

namespace base {
namespace {

constexpr char hex_digits[] = "0123456789abcdef";

// Characters that move the cursor, end a line or reorder what stands beside them.
bool must_escape(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0x200e || c == 0x200f ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void append_hex_byte(std::string& out, uint8_t byte) {
    out += "\\x";
    out += hex_digits[byte >> 4];
    out += hex_digits[byte & 0xf];
}

}  // namespace

std::string printable(std::string_view text, size_t bytes_max) {
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
        const utf8::Decoded next = utf8::decode(text, at);
        if (at + next.length > bytes_max) return out + "...";
        if (!next.valid) {
            for (uint32_t i = 0; i < next.length; ++i) append_hex_byte(out, static_cast<uint8_t>(text[at + i]));
        } else if (next.code_point == '\\') {
            out += "\\\\";
        } else if (next.code_point == '\n') {
            out += "\\n";
        } else if (next.code_point == '\t') {
            out += "\\t";
        } else if (next.code_point == '\r') {
            out += "\\r";
        } else if (must_escape(next.code_point)) {
            if (next.code_point < 0x80) {
                append_hex_byte(out, static_cast<uint8_t>(next.code_point));
            } else {
                out += "\\u{";
                for (int shift = 12; shift >= 0; shift -= 4) out += hex_digits[next.code_point >> shift & 0xf];
                out += '}';
            }
        } else {
            out += text.substr(at, next.length);
        }
        at += next.length;
    }
    return out;
}

std::string without_controls(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
        const utf8::Decoded next = utf8::decode(text, at);
        if (!next.valid) utf8::append(out, utf8::replacement);
        else if (!must_escape(next.code_point) || next.code_point == '\n' || next.code_point == '\t') out.append(text.substr(at, next.length));
        at += next.length;
    }
    return out;
}

}  // namespace base
