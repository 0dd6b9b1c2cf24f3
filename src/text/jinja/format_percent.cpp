// 'format' % args.
#include <cmath>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/format.h"
#include "text/jinja/format_digits.h"
#include "text/jinja/strings.h"

namespace text::jinja {

using base::cat;

namespace {

double real_of(const Value& value, char type) {
    if (!value.is_number()) fail(cat("%", type, " format: a real number is required, not ", type_name(value)));
    return value.as_real();
}

int64_t integer_of(const Value& value) {
    if (value.is_int_like()) return value.as_int();
    const double d = value.as_real();
    if (!(std::abs(d) < 9.2e18)) fail("cannot convert a float beyond 64 bits to an integer");
    return static_cast<int64_t>(d);
}

}  // namespace

Value format_percent(Interpreter& in, const Str& format, const Value& args) {
    const std::string_view text = format.text;
    Builder out(in.heap());
    const bool many = args.is(Kind::list) && args.list().is_tuple();
    size_t next = 0;
    bool used_mapping = false;
    const auto take = [&]() -> const Value& {
        if (many ? next >= args.list().items.size() : next >= 1) fail("not enough arguments for format string");
        return many ? args.list().items[next++] : (++next, args);
    };
    for (size_t at = 0; at < text.size();) {
        in.heap().step();
        const size_t percent = std::min(text.find('%', at), text.size());
        out.add(format, at, percent);
        at = percent + 1;
        if (percent == text.size()) break;
        const Value* mapped = nullptr;
        if (at < text.size() && text[at] == '(') {
            const size_t close = text.find(')', at);
            if (close == std::string_view::npos) fail("incomplete format key");
            if (!args.is(Kind::dict)) fail("format requires a mapping");
            mapped = args.dict().find(text.substr(at + 1, close - at - 1));
            if (!mapped) fail(cat("KeyError: '", base::printable(text.substr(at + 1, close - at - 1)), "'"));
            used_mapping = true;
            at = close + 1;
        }
        bool left = false, sign = false, space = false, zero = false, alternate = false;
        for (; at < text.size(); ++at) {
            if (text[at] == '-')
                left = true;
            else if (text[at] == '+')
                sign = true;
            else if (text[at] == ' ')
                space = true;
            else if (text[at] == '0')
                zero = true;
            else if (text[at] == '#')
                alternate = true;
            else
                break;
        }
        const auto star = [&]() {
            const Value& value = take();
            if (!value.is_int_like()) fail("* wants int");
            if (value.as_int() > static_cast<int64_t>(limits::template_output_bytes) ||
                value.as_int() < -static_cast<int64_t>(limits::template_output_bytes)) {
                fail_limit("a width in a format is too large");
            }
            return value.as_int();
        };
        int64_t width = 0, precision = -1;
        if (at < text.size() && text[at] == '*') {
            ++at;
            width = star();
            if (width < 0) left = true, width = -width;
        } else {
            width = parse_number(text, at);
        }
        if (at < text.size() && text[at] == '.') {
            ++at;
            if (at < text.size() && text[at] == '*') {
                ++at;
                precision = std::max<int64_t>(star(), 0);
            } else {
                precision = parse_number(text, at);
            }
        }
        while (at < text.size() && (text[at] == 'l' || text[at] == 'h' || text[at] == 'L')) ++at;
        if (at >= text.size()) fail("incomplete format");
        const char type = text[at++];
        if (type == '%') {
            out.add("%");
            continue;
        }
        static constexpr std::string_view types = "srdiuoxXeEfFgGca";
        if (types.find(type) == std::string_view::npos)
            fail(cat("unsupported format character '", base::printable(text.substr(at - 1, 1)), "'"));
        const Value& value = mapped ? *mapped : take();
        Builder body(in.heap());
        std::string prefix;
        const auto number = [&](bool negative, std::string digits) {
            prefix = cat(negative ? "-" : sign ? "+" : space ? " " : "", prefix);
            body.add(digits);
        };
        bool numeric = true;
        switch (type) {
            case 's':
            case 'r':
            case 'a': {
                numeric = false;
                Builder whole(in.heap());
                type == 's' ? in.print(whole, value) : in.repr(whole, value);
                Value printed = whole.finish();
                if (format.markup && !(value.is_string() && value.str().markup && type == 's')) {
                    Builder escaped(in.heap());
                    add_escaped(in, escaped, printed.str());
                    printed = escaped.finish();
                }
                const Str& str = printed.str();
                body.add(str, 0,
                         precision >= 0 && static_cast<size_t>(precision) < str.length() ? byte_of(str, static_cast<size_t>(precision))
                                                                                         : str.text.size());
                break;
            }
            case 'c':
                numeric = false;
                if (value.is_int_like()) {
                    if (value.as_int() < 0 || value.as_int() > 0x10FFFF) fail("%c arg not in range(0x110000)");
                    std::string c;
                    base::utf8::append(c, static_cast<char32_t>(value.as_int()));
                    body.add(c, true);  // whose number it is isn't known: a user's
                } else if (value.is_string() && value.str().length() == 1) {
                    body.add(value.str());
                } else {
                    fail("%c requires int or char");
                }
                break;
            case 'd':
            case 'i':
            case 'u':
            case 'o':
            case 'x':
            case 'X': {
                const bool decimal = type == 'd' || type == 'i' || type == 'u';
                if (!value.is_number() || (!decimal && !value.is_int_like()))
                    fail(cat("%", type, " format: a number is required, not ", type_name(value)));
                const int64_t n = integer_of(value);
                const uint64_t absolute = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
                std::string digits = radix(absolute, decimal ? 10 : type == 'o' ? 8 : 16, type == 'X');
                if (precision > precision_max) fail_limit(cat("a precision above ", precision_max));
                if (precision > static_cast<int64_t>(digits.size())) digits.insert(0, static_cast<size_t>(precision) - digits.size(), '0');
                if (alternate && !decimal) prefix = type == 'o' ? "0o" : type == 'x' ? "0x" : "0X";
                number(n < 0, std::move(digits));
                break;
            }
            default: {
                const double d = real_of(value, type);
                number(std::signbit(d) && !std::isnan(d), float_digits(std::abs(d), type, precision < 0 ? 6 : precision, alternate));
                zero = zero && std::isfinite(d);
            }
        }
        const Value text_value = body.finish();
        const size_t length = text_value.str().length() + prefix.size();
        const size_t padding = static_cast<size_t>(width) > length ? static_cast<size_t>(width) - length : 0;
        in.heap().step(padding / 16);
        if (!left && !(zero && numeric)) pad(out, padding);
        out.add(prefix);
        if (!left && zero && numeric) pad(out, padding, "0");
        out.add(text_value.str());
        if (left) pad(out, padding);
    }
    const bool all_used = many ? next >= args.list().items.size()
                               : next > 0 || used_mapping || args.is(Kind::dict) || args.is(Kind::range) ||
                                     (args.is(Kind::list) && !args.list().is_view()) || args.is_undefined();
    if (!all_used) fail("not all arguments converted during string formatting");
    return marked(out.finish(), format);
}

}  // namespace text::jinja
