// Filters on numbers and single values.
#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/json.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

namespace {

Value absolute(Interpreter& in, const Value& value, Args& args) {
    args.none("abs");
    if (value.is_undefined()) fail(value.undefined().message);
    if (value.is(Kind::real)) return Value::real(std::abs(value.as_real()));
    if (!value.is_int_like()) fail(cat("bad operand type for abs(): '", type_name(value), "'"));
    return value.as_int() < 0 ? unary(in, Op::neg, value) : Value::integer(value.as_int());
}

Value default_value(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("default", {"default_value", "boolean"}, out);
    const bool boolean = out[1] && truthy(*out[1]);
    if (value.is_undefined() || (boolean && !truthy(value))) return out[0] ? *out[0] : in.string("");
    return value;
}

std::optional<int64_t> truncated(double d) {
    if (!std::isfinite(d)) return std::nullopt;
    if (std::abs(d) >= 9.2e18) fail("a float beyond 64 bits as an integer");
    return static_cast<int64_t>(d);
}

Value to_int(Interpreter&, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("int", {"default", "base"}, out);
    const Value otherwise = out[0] ? *out[0] : Value::integer(0);
    const int64_t base = out[1] ? int_argument(*out[1], "int's base") : 10;
    if (value.is_undefined()) fail(value.undefined().message);
    if (value.is_int_like()) return Value::integer(value.as_int());
    std::optional<int64_t> result;
    if (value.is(Kind::real)) {
        if (std::isinf(value.as_real())) fail("cannot convert float infinity to integer");
        result = truncated(value.as_real());
    } else if (value.is_string()) {
        result = parse_int(value.str().text, static_cast<int>(base < 0 || base > 36 ? 37 : base));
        if (!result) {
            if (const auto real = parse_float(value.str().text)) result = truncated(*real);
        }
    }
    return result ? Value::integer(*result) : otherwise;
}

Value to_float(Interpreter&, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("float", {"default"}, out);
    if (value.is_undefined()) fail(value.undefined().message);
    if (value.is_number()) return Value::real(value.as_real());
    if (value.is_string()) {
        if (const auto real = parse_float(value.str().text)) return Value::real(*real);
    }
    return out[0] ? *out[0] : Value::real(0);
}

Value length(Interpreter&, const Value& value, Args& args) {
    args.none("length");
    return Value::integer(length_of(value));
}

// Python's round of an integer to a negative precision: half to even.
int64_t round_integer(int64_t value, int64_t digits) {
    if (digits < -18) return 0;
    int64_t unit = 1;
    for (int64_t i = digits; i < 0; ++i) unit *= 10;
    const int64_t rest = ((value % unit) + unit) % unit;
    int64_t down;
    if (__builtin_sub_overflow(value, rest, &down)) fail("integer overflow: 64 bits are all there are");
    const bool odd = (down / unit) % 2 != 0;
    if (rest < unit - rest || (rest == unit - rest && !odd)) return down;
    int64_t up;
    if (__builtin_add_overflow(down, unit, &up)) fail("integer overflow: 64 bits are all there are");
    return up;
}

double round_float(double value, int64_t digits) {
    if (!std::isfinite(value) || digits > 323) return value;
    if (digits < -308) return std::copysign(0.0, value);
    if (digits < 0) {
        const double unit = std::pow(10.0, static_cast<double>(-digits));
        return std::nearbyint(value / unit) * unit;  // half to even
    }
    // The decimal digits of the exact value, correctly rounded, half to even: what Python does.
    char buffer[800];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, static_cast<int>(digits)).ptr;
    double result = value;
    std::from_chars(buffer, end, result);
    return result;
}

Value round_value(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("round", {"precision", "method"}, out);
    const int64_t digits = out[0] ? int_argument(*out[0], "round's precision") : 0;
    const std::string_view method = out[1] ? string_argument(*out[1], "round's method").text : "common";
    if (value.is_undefined()) fail(value.undefined().message);
    if (method == "common") {
        if (value.is_int_like()) return Value::integer(digits >= 0 ? value.as_int() : round_integer(value.as_int(), digits));
        if (!value.is(Kind::real)) fail(cat("type ", type_name(value), " doesn't define __round__ method"));
        return Value::real(round_float(value.as_real(), digits));
    }
    if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
    const Value scale = binary(in, Op::pow, Value::integer(10), Value::integer(digits));
    const Value scaled = binary(in, Op::mul, value, scale);
    if (!scaled.is_number()) fail("must be real number");
    const double whole = method == "ceil" ? std::ceil(scaled.as_real()) : std::floor(scaled.as_real());
    return binary(in, Op::div, Value::real(whole), scale);
}

Value tojson(Interpreter& in, const Value& value, Args& args) {
    const Value* out[4];
    args.bind("tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, out);
    JsonStyle style;
    style.ensure_ascii = out[0] && truthy(*out[0]);
    style.sort_keys = out[3] && truthy(*out[3]);
    if (out[1] && !out[1]->is_none()) {
        if (out[1]->is_string()) {
            style.indent = *out[1];
        } else {
            const int64_t width = int_argument(*out[1], "tojson's indent");
            if (width > 1024) fail_limit("tojson's indent is above 1024");
            style.indent = in.string(std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
        }
        style.item_separator.assign(1, ',');
    }
    if (out[2] && !out[2]->is_none()) {
        const std::vector<Value> pair = elements(in.heap(), *out[2]);
        if (pair.size() != 2) fail("tojson's separators are two strings");
        style.item_separator = string_argument(pair[0], "a separator").text;
        style.key_separator = string_argument(pair[1], "a separator").text;
        style.user_separators = has_user_bytes(pair[0].str()) || has_user_bytes(pair[1].str());
    }
    Builder text(in.heap());
    write_json(in, text, value, style);
    return text.finish();
}

Value attribute(Interpreter& in, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("attr", {"name"}, out, 1);
    const Str& name = string_argument(*out[0], "attr's name");
    if (value.is(Kind::dict) && !find_dict_method(name.text)) {
        // Unlike value.name, attr never looks at the items of a mapping.
        if (name.text.starts_with("__")) fail(cat("access to attribute '", base::printable(name.text), "' is unsafe"));
        return in.undefined(cat("'dict object' has no attribute '", base::printable(name.text), "'"));
    }
    return in.get_attribute(value, name.text);
}

Value filesizeformat(Interpreter& in, const Value& value, Args& args) {
    const Value* out[1];
    args.bind("filesizeformat", {"binary"}, out);
    std::optional<double> bytes;
    if (value.is_number()) bytes = value.as_real();
    if (value.is_string()) bytes = parse_float(value.str().text);
    if (!bytes) fail(cat("could not convert ", type_name(value), " to float"));
    const bool binary_units = out[0] && truthy(*out[0]);
    const double base = binary_units ? 1024 : 1000;
    if (*bytes == 1) return in.string("1 Byte");
    if (*bytes < base) return in.string(cat(std::to_string(truncated(*bytes).value_or(0)), " Bytes"));
    static constexpr const char* prefixes[] = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
    double unit = base * base;
    size_t i = 0;
    while (i + 1 < std::size(prefixes) && !(*bytes < unit)) {
        unit *= base;
        ++i;
    }
    char buffer[400];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, base * *bytes / unit, std::chars_format::fixed, 1).ptr;
    std::string prefix = prefixes[i];
    if (binary_units) prefix = i == 0 ? "Ki" : prefix.append("i");
    return in.string(cat(std::string_view(buffer, static_cast<size_t>(end - buffer)), " ", prefix, "B"));
}

template <int which>
Value refused(Interpreter&, const Value&, Args&) {
    static constexpr const char* reasons[] = {"the filter 'random' is refused: the same prompt must come out each time",
                                              "the filter 'pprint' is not built", "the filter 'urlize' is not built",
                                              "the filter 'striptags' is not built", "the filter 'wordwrap' is not built"};
    fail(reasons[which]);
}

constexpr FilterEntry table[] = {
    {"abs", absolute},          {"attr", attribute},
    {"count", length},          {"d", default_value},
    {"default", default_value}, {"filesizeformat", filesizeformat},
    {"float", to_float},        {"int", to_int},
    {"length", length},         {"round", round_value},
    {"tojson", tojson},         {"random", refused<0>},
    {"pprint", refused<1>},     {"urlize", refused<2>},
    {"striptags", refused<3>},  {"wordwrap", refused<4>},
};

}  // namespace

std::span<const FilterEntry> value_filters() { return table; }

}  // namespace text::jinja
