// 'format'.format(args) and the format specifiers in it.
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

void format_value(Interpreter& in, Builder& out, const Value& value, std::string_view spec, bool user) {
    if (spec.empty()) return in.print(out, value);
    if (!value.is_number() && !value.is_string()) fail(cat("unsupported format string passed to ", type_name(value), ".__format__"));
    size_t at = 0;
    std::string fill = " ";
    char align = 0;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
    const size_t first = base::utf8::decode(spec, 0).length;
    if (first < spec.size() && is_align(spec[first])) {
        fill = spec.substr(0, first);
        align = spec[first];
        at = first + 1;
    } else if (is_align(spec[0])) {
        align = spec[at++];
    }
    char sign = 0;
    if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' ')) sign = spec[at++];
    const bool alternate = at < spec.size() && spec[at] == '#' && ++at;
    if (at < spec.size() && spec[at] == '0' && !align) {
        fill = "0";
        align = '=';
        ++at;
    } else if (at < spec.size() && spec[at] == '0') {
        ++at;
    }
    const int64_t width = parse_number(spec, at);
    char group = 0;
    if (at < spec.size() && (spec[at] == ',' || spec[at] == '_')) group = spec[at++];
    int64_t precision = -1;
    if (at < spec.size() && spec[at] == '.') {
        ++at;
        if (at >= spec.size() || spec[at] < '0' || spec[at] > '9') fail("format specifier missing precision");
        precision = parse_number(spec, at);
    }
    char type = 0;
    if (at < spec.size()) type = spec[at++];
    if (at != spec.size()) fail(cat("invalid format specifier '", base::printable(spec), "'"));

    Builder body(in.heap());
    std::string prefix;
    if (value.is_string()) {
        if (type != 0 && type != 's')
            fail(cat("unknown format code '", base::printable(std::string(1, type)), "' for object of type 'str'"));
        if (sign || alternate || group || align == '=') fail("sign, '#', ',' and '=' are not allowed in a string format specifier");
        const Str& str = value.str();
        body.add(str, 0,
                 precision >= 0 && static_cast<size_t>(precision) < str.length() ? byte_of(str, static_cast<size_t>(precision))
                                                                                 : str.text.size());
        if (!align) align = '<';
    } else {
        if (!align) align = '>';
        const bool integer_type =
            type == 'd' || type == 'b' || type == 'o' || type == 'x' || type == 'X' || type == 'c' || type == 'n' || type == 0;
        std::string digits;
        bool negative = false;
        if (value.is_int_like() && integer_type) {
            if (precision >= 0) fail("precision not allowed in integer format specifier");
            const int64_t n = value.as_int();
            if (type == 'c') {
                if (n < 0 || n > 0x10FFFF) fail("%c arg not in range(0x110000)");
                base::utf8::append(digits, static_cast<char32_t>(n));
            } else {
                negative = n < 0;
                const uint64_t absolute = negative ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
                const int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
                digits = radix(absolute, base, type == 'X');
                if (alternate && base != 10) prefix = std::string("0") + type;
            }
        } else {
            const double d = value.as_real();
            negative = std::signbit(d) && !std::isnan(d);
            const double absolute = std::abs(d);
            if (type == 0) {
                if (precision < 0) {
                    digits = float_repr(absolute);
                } else {
                    digits = float_digits(absolute, 'g', precision, alternate);
                    if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
                }
            } else if (type == '%') {
                digits = float_digits(absolute * 100, 'f', precision < 0 ? 6 : precision, alternate) + "%";
            } else if (std::string_view("eEfFgGn").find(type) != std::string_view::npos) {
                digits = float_digits(absolute, type == 'n' ? 'g' : type, precision < 0 ? 6 : precision, alternate);
            } else {
                fail(cat("unknown format code '", base::printable(std::string(1, type)), "' for object of type '", type_name(value), "'"));
            }
        }
        if (group) {
            const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
            const size_t every = type == 'b' || type == 'o' || type == 'x' || type == 'X' ? 4 : 3;
            for (size_t i = end; i > every; i -= every) digits.insert(i - every, 1, group);
            // Zero padding continues the groups.
            if (align == '=' && fill == "0") {
                const size_t total = digits.size() + prefix.size() + (negative || sign == '+' || sign == ' ');
                for (size_t n = total, run = std::min(digits.find(group), end); n < static_cast<size_t>(width);) {
                    if (run == every) {
                        digits.insert(0, 1, group);
                        run = 0;
                        if (++n >= static_cast<size_t>(width)) {
                            digits.insert(0, 1, '0');
                            break;
                        }
                    }
                    digits.insert(0, 1, '0');
                    ++run;
                    ++n;
                }
            }
        }
        prefix = cat(negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "", prefix);
        body.add(digits, type == 'c');  // whose number it is isn't known: a user's
    }
    const Value text = body.finish();
    const size_t length = text.str().length() + prefix.size();
    const size_t padding = static_cast<size_t>(width) > length ? static_cast<size_t>(width) - length : 0;
    in.heap().step(padding / 16);
    const size_t before = align == '>' ? padding : align == '^' ? padding / 2 : 0;
    pad(out, before, fill, user);
    out.add(prefix);
    if (align == '=') pad(out, padding, fill, user);
    out.add(text.str());
    if (align == '<' || align == '^') pad(out, padding - before, fill, user);
}

// --- 'format'.format(args)

namespace {

class BraceFormatter {
  public:
    BraceFormatter(Interpreter& in, Args& args) : in_(in), args_(args) {}

    void format(Builder& out, const Str& format, size_t begin, size_t end, int depth) {
        if (depth > 2) fail("max string recursion exceeded");
        const std::string_view text = format.text;
        for (size_t at = begin; at < end;) {
            in_.heap().step();
            size_t brace = at;
            while (brace < end && text[brace] != '{' && text[brace] != '}') ++brace;
            out.add(format, at, brace);
            if (brace == end) return;
            if (brace + 1 < end && text[brace + 1] == text[brace]) {
                out.add(format, brace, brace + 1);
                at = brace + 2;
                continue;
            }
            if (text[brace] == '}') fail("single '}' encountered in format string");
            // {field!conversion:spec}, with braces allowed in the spec.
            size_t close = brace + 1, open = 1;
            while (close < end && open > 0) {
                open += text[close] == '{';
                open -= text[close] == '}';
                ++close;
            }
            if (open > 0) fail("expected '}' before end of string");
            replacement(out, format, brace + 1, close - 1, depth);
            at = close;
        }
    }

  private:
    void replacement(Builder& out, const Str& format, size_t begin, size_t end, int depth) {
        const std::string_view text = format.text;
        size_t name_end = begin;
        bool bracket = false;
        while (name_end < end && (bracket || (text[name_end] != '!' && text[name_end] != ':'))) {
            if (text[name_end] == '[') bracket = true;
            if (text[name_end] == ']') bracket = false;
            ++name_end;
        }
        Value value = field(text.substr(begin, name_end - begin));
        size_t at = name_end;
        if (at < end && text[at] == '!') {
            const char conversion = at + 1 < end ? text[at + 1] : ' ';
            if (conversion == 'r' || conversion == 'a') {
                Builder shown(in_.heap());
                in_.repr(shown, value);
                value = shown.finish();
            } else if (conversion == 's') {
                value = in_.to_string(value);
            } else {
                fail("unknown conversion specifier");
            }
            at += 2;
            if (at < end && text[at] != ':') fail("expected ':' after conversion specifier");
        }
        Builder spec(in_.heap());
        if (at < end) this->format(spec, format, at + 1, end, depth + 1);
        if (!format.markup || (value.is_string() && value.str().markup))
            return format_value(in_, out, value, spec.text(), !spec.user().empty());
        Builder formatted(in_.heap());
        format_value(in_, formatted, value, spec.text(), !spec.user().empty());
        add_escaped(in_, out, formatted.finish().str());
    }

    Value field(std::string_view name) {
        size_t end = std::min(name.find_first_of(".["), name.size());
        const std::string_view first = name.substr(0, end);
        Value value;
        const bool number = !first.empty() && first.find_first_not_of("0123456789") == std::string_view::npos;
        if (first.empty() || number) {
            if (first.empty() == manual_ && used_) fail("cannot switch between manual field specification and automatic field numbering");
            manual_ = !first.empty();
            used_ = true;
            size_t at = 0;
            const size_t index = first.empty() ? next_++ : static_cast<size_t>(parse_number(first, at));
            if (index >= args_.positional.size()) fail(cat("replacement index ", index, " out of range for positional args tuple"));
            value = args_.positional[index];
        } else {
            bool found = false;
            for (const auto& [key, named] : args_.named) {
                if (key != first) continue;
                value = named;
                found = true;
            }
            if (!found) fail(cat("KeyError: '", base::printable(first), "'"));
        }
        while (end < name.size()) {
            if (name[end] == '.') {
                const size_t stop = std::min(name.find_first_of(".[", end + 1), name.size());
                if (stop == end + 1) fail("empty attribute in format string");
                value = in_.get_attribute(value, name.substr(end + 1, stop - end - 1));
                end = stop;
            } else if (name[end] == '[') {
                const size_t close = name.find(']', end);
                if (close == std::string_view::npos) fail("missing ']' in format string");
                const std::string_view key = name.substr(end + 1, close - end - 1);
                if (key.empty()) fail("empty attribute in format string");
                size_t at = 0;
                const bool index = key.find_first_not_of("0123456789") == std::string_view::npos;
                value = in_.get_item(value, index ? Value::integer(parse_number(key, at)) : in_.string(std::string(key)));
                end = close + 1;
            } else {
                fail("only '.' or '[' may follow ']' in format field specifier");
            }
        }
        return value;
    }

    Interpreter& in_;
    Args& args_;
    size_t next_ = 0;
    bool manual_ = false, used_ = false;
};

}  // namespace

Value format_braces(Interpreter& in, const Str& format, Args& args) {
    Builder out(in.heap());
    BraceFormatter(in, args).format(out, format, 0, format.text.size(), 0);
    return marked(out.finish(), format);
}

}  // namespace text::jinja
