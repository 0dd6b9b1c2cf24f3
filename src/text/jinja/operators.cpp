// Python's operators on the interpreter's values. Integers have 64 bits: beyond them is an error, never a wrap.
#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "base/message.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/format.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/strings.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

namespace {

const char* op_text(Op op) {
    switch (op) {
        case Op::add: return "+";
        case Op::sub: return "-";
        case Op::mul: return "*";
        case Op::div: return "/";
        case Op::floordiv: return "//";
        case Op::mod: return "%";
        case Op::pow: return "** or pow()";
        default: return "?";
    }
}

[[noreturn]] void unsupported(Op op, const Value& a, const Value& b) {
    fail(cat("unsupported operand type(s) for ", op_text(op), ": '", type_name(a), "' and '", type_name(b), "'"));
}

[[noreturn]] void overflow() { fail("integer overflow: 64 bits are all there are"); }

int64_t floor_divide(int64_t a, int64_t b) {
    if (b == 0) fail("integer division or modulo by zero");
    if (b == -1) {  // the smallest integer has no opposite
        int64_t result;
        if (__builtin_sub_overflow(int64_t{0}, a, &result)) overflow();
        return result;
    }
    const int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a % b < 0) != (b < 0));
}

int64_t floor_modulo(int64_t a, int64_t b) {
    if (b == 0) fail("integer division or modulo by zero");
    if (b == -1) return 0;
    const int64_t rest = a % b;
    return rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
}

double float_modulo(double a, double b) {
    if (b == 0) fail("float modulo by zero");
    double rest = std::fmod(a, b);
    if (rest != 0) {
        if ((rest < 0) != (b < 0)) rest += b;
    } else {
        rest = std::copysign(0.0, b);
    }
    return rest;
}

double float_floor_divide(double a, double b) {
    if (b == 0) fail("float floor division by zero");
    // As CPython: from the remainder, so that (a // b) * b + a % b stays near a.
    double rest = std::fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(0.0, a / b);
    const double floored = std::floor(quotient);
    return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value power(const Value& a, const Value& b) {
    if (a.is_int_like() && b.is_int_like() && b.as_int() >= 0) {
        int64_t result = 1, factor = a.as_int();
        for (uint64_t n = static_cast<uint64_t>(b.as_int()); n > 0; n >>= 1) {
            if (n & 1 && __builtin_mul_overflow(result, factor, &result)) overflow();
            if (n > 1 && __builtin_mul_overflow(factor, factor, &factor)) overflow();
        }
        return Value::integer(result);
    }
    const double x = a.as_real(), y = b.as_real();
    if (x == 0 && y < 0) fail("0.0 cannot be raised to a negative power");
    if (x < 0 && y != std::floor(y) && std::isfinite(y)) fail("complex numbers are not built");
    const double result = std::pow(x, y);
    if (std::isinf(result) && std::isfinite(x) && std::isfinite(y)) fail("result of ** is too large for a float");
    return Value::real(result);
}

Value arithmetic(Op op, const Value& a, const Value& b) {
    if (op == Op::pow) return power(a, b);
    if (op == Op::div) {
        if (b.as_real() == 0) fail("division by zero");
        return Value::real(a.as_real() / b.as_real());
    }
    if (a.is_int_like() && b.is_int_like()) {
        const int64_t x = a.as_int(), y = b.as_int();
        int64_t result = 0;
        bool bad = false;
        switch (op) {
            case Op::add: bad = __builtin_add_overflow(x, y, &result); break;
            case Op::sub: bad = __builtin_sub_overflow(x, y, &result); break;
            case Op::mul: bad = __builtin_mul_overflow(x, y, &result); break;
            case Op::floordiv: result = floor_divide(x, y); break;
            default: result = floor_modulo(x, y); break;
        }
        if (bad) overflow();
        return Value::integer(result);
    }
    const double x = a.as_real(), y = b.as_real();
    switch (op) {
        case Op::add: return Value::real(x + y);
        case Op::sub: return Value::real(x - y);
        case Op::mul: return Value::real(x * y);
        case Op::floordiv: return Value::real(float_floor_divide(x, y));
        default: return Value::real(float_modulo(x, y));
    }
}

Value repeat(Interpreter& in, const Value& sequence, int64_t times) {
    times = std::max<int64_t>(times, 0);
    if (sequence.is_string()) {
        const Str& str = sequence.str();
        if (str.text.empty()) times = 0;
        if (static_cast<uint64_t>(times) > limits::template_output_bytes / std::max<size_t>(str.text.size(), 1)) {
            fail_limit(cat("a string of more than ", limits::template_output_bytes, " bytes"));
        }
        in.heap().step(static_cast<uint64_t>(times) / 64);
        Builder out(in.heap());
        for (int64_t i = 0; i < times; ++i) out.add(str);
        return marked(out.finish(), str);
    }
    const List& list = sequence.list();
    if (list.items.empty()) times = 0;
    if (static_cast<uint64_t>(times) > limits::template_values / std::max<size_t>(list.items.size(), 1)) {
        fail_limit(cat("a list of more than ", limits::template_values, " values"));
    }
    std::vector<Value> items;
    items.reserve(list.items.size() * static_cast<size_t>(times));
    for (int64_t i = 0; i < times; ++i) items.insert(items.end(), list.items.begin(), list.items.end());
    return make_list(in.heap(), std::move(items), list.is_tuple() ? Flavor::tuple : Flavor::list);
}

bool is_sequence(const Value& v) { return v.is_string() || (v.is(Kind::list) && !v.list().is_view()); }

}  // namespace

Value binary(Interpreter& in, Op op, const Value& a, const Value& b) {
    if (op == Op::mod && a.is_string()) return format_percent(in, a.str(), b);  // '%s' % undefined prints nothing, as in Python
    if (a.is_undefined()) fail(a.undefined().message);
    if (b.is_undefined()) fail(b.undefined().message);
    if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
    if (op == Op::add) {
        if (a.is_string() && b.is_string()) {
            Builder out(in.heap());
            const bool markup = a.str().markup || b.str().markup;
            for (const Value* part : {&a, &b}) markup ? add_escaped(in, out, part->str()) : out.add(part->str());
            Value sum = out.finish();
            sum.str().markup = markup;
            return sum;
        }
        if (a.is(Kind::list) && b.is(Kind::list) && is_sequence(a) && is_sequence(b) && a.list().is_tuple() == b.list().is_tuple()) {
            const auto &x = a.list().items, &y = b.list().items;
            in.heap().step((x.size() + y.size()) / 16);
            std::vector<Value> items;
            items.reserve(x.size() + y.size());
            items.insert(items.end(), x.begin(), x.end());
            items.insert(items.end(), y.begin(), y.end());
            return make_list(in.heap(), std::move(items), a.list().is_tuple() ? Flavor::tuple : Flavor::list);
        }
        if (is_sequence(a)) fail(cat("can only concatenate ", type_name(a), " (not \"", type_name(b), "\") to ", type_name(a)));
    }
    if (op == Op::mul) {
        if (is_sequence(a) && b.is_int_like()) return repeat(in, a, b.as_int());
        if (is_sequence(b) && a.is_int_like()) return repeat(in, b, a.as_int());
        if (is_sequence(a) || is_sequence(b))
            fail(cat("can't multiply sequence by non-int of type '", type_name(is_sequence(a) ? b : a), "'"));
    }
    unsupported(op, a, b);
}

Value unary(Interpreter&, Op op, const Value& a) {
    if (a.is_undefined()) fail(a.undefined().message);
    if (a.is_int_like()) {
        int64_t result = a.as_int();
        if (op == Op::neg && __builtin_sub_overflow(int64_t{0}, a.as_int(), &result)) overflow();
        return Value::integer(result);
    }
    if (a.is(Kind::real)) return Value::real(op == Op::neg ? -a.as_real() : a.as_real());
    fail(cat("bad operand type for unary ", op == Op::neg ? "-" : "+", ": '", type_name(a), "'"));
}

bool contains(Interpreter& in, const Value& container, const Value& item) {
    switch (container.kind()) {
        case Kind::string: {
            if (!item.is_string()) fail(cat("'in <string>' requires string as left operand, not ", type_name(item)));
            in.heap().work(container.str().text.size());
            return find_text(container.str().text, item.str().text) != std::string_view::npos;
        }
        case Kind::dict:
            if (!is_hashable(item)) fail(cat("unhashable type: '", type_name(item), "'"));
            return container.dict().find(item) != nullptr;
        case Kind::range: {
            const Range& range = container.range();
            if (!item.is_number()) return false;
            if (item.is(Kind::real) && item.as_real() != std::floor(item.as_real())) return false;
            if (item.is(Kind::real) && std::abs(item.as_real()) > 9e18) return false;
            const int64_t value = item.is(Kind::real) ? static_cast<int64_t>(item.as_real()) : item.as_int();
            if (range.length == 0) return false;
            const int64_t first = range.start, last = range.at(range.length - 1);
            if (value < std::min(first, last) || value > std::max(first, last)) return false;
            return (static_cast<__int128>(value) - first) % range.step == 0;
        }
        case Kind::none:
        case Kind::boolean:
        case Kind::integer:
        case Kind::real:
        case Kind::space: fail(cat("argument of type '", type_name(container), "' is not iterable"));
        default: break;
    }
    if (!is_iterable(container)) fail(cat("argument of type '", type_name(container), "' is not iterable"));
    if (container.is(Kind::list) && container.list().flavor == Flavor::dict_keys && !is_hashable(item)) {
        fail(cat("unhashable type: '", type_name(item), "'"));
    }
    Cursor cursor(in.heap(), container);
    Value element;
    while (cursor.next(element)) {
        if (equal(element, item)) return true;
    }
    return false;
}

}  // namespace text::jinja
