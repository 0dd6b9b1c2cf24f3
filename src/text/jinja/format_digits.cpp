#include "text/jinja/format_digits.h"

#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/failure.h"

namespace text::jinja {

using base::cat;

int64_t parse_number(std::string_view text, size_t& at) {
    int64_t value = 0;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        value = value * 10 + (text[at++] - '0');
        if (value > static_cast<int64_t>(limits::template_output_bytes)) fail_limit("a width in a format is too large");
    }
    return value;
}

std::string radix(uint64_t value, int base, bool upper) {
    char buffer[72];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, base).ptr;
    std::string out(buffer, end);
    if (upper) {
        for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    return out;
}

// The digits of a non-negative float in one of the types e f g; `alternate` keeps the point and zeros of g.
std::string float_digits(double value, char type, int64_t precision, bool alternate) {
    if (precision > precision_max) fail_limit(cat("a precision above ", precision_max));
    const char lower = static_cast<char>(type | 0x20);
    const int p = static_cast<int>(precision);
    std::string out;
    if (std::isnan(value)) {
        out = "nan";
    } else if (std::isinf(value)) {
        out = "inf";
    } else {
        char buffer[1024];
        const auto style = lower == 'e'   ? std::chars_format::scientific
                           : lower == 'f' ? std::chars_format::fixed
                                          : std::chars_format::general;
        const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, style, lower == 'g' && p == 0 ? 1 : p).ptr;
        out.assign(buffer, end);
        if (alternate && lower != 'g' && p == 0) {
            const size_t e = out.find('e');
            out.insert(out.begin() + static_cast<std::ptrdiff_t>(e == std::string::npos ? out.size() : e), '.');
        }
    }
    if (type != lower) {
        for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    return out;
}

void pad(Builder& out, size_t n, std::string_view fill, bool user) {
    for (size_t i = 0; i < n; ++i) out.add(fill, user);
}

}  // namespace text::jinja
