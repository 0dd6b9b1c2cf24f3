#include "text/jinja/tests.h"

#include <cmath>

#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/unicode_case.h"

namespace text::jinja {

using base::cat;

namespace {

using In = Interpreter;

template <bool (*holds)(const Value&)>
bool plain(In&, const Value& value, Args& args) {
    args.none("this test");
    return holds(value);
}

const Value& one(Args& args, const char* what) {
    const Value* out[1];
    args.bind(what, {"other"}, out, 1);
    return *out[0];
}

bool divisible(In& in, const Value& value, const Value& by) { return equal(binary(in, Op::mod, value, by), Value::integer(0)); }

bool even(In& in, const Value& value, Args& args) {
    args.none("even");
    return divisible(in, value, Value::integer(2));
}
bool odd(In& in, const Value& value, Args& args) {
    args.none("odd");
    return equal(binary(in, Op::mod, value, Value::integer(2)), Value::integer(1));
}
bool divisibleby(In& in, const Value& value, Args& args) { return divisible(in, value, one(args, "divisibleby")); }

bool eq(In&, const Value& value, Args& args) { return equal(value, one(args, "eq")); }
bool ne(In&, const Value& value, Args& args) { return !equal(value, one(args, "ne")); }
bool lt(In&, const Value& value, Args& args) { return compare(value, one(args, "lt"), "<") == -1; }
bool gt(In&, const Value& value, Args& args) { return compare(value, one(args, "gt"), ">") == 1; }
bool le(In&, const Value& value, Args& args) {
    const int order = compare(value, one(args, "le"), "<=");
    return order == -1 || order == 0;
}
bool ge(In&, const Value& value, Args& args) {
    const int order = compare(value, one(args, "ge"), ">=");
    return order == 1 || order == 0;
}
bool in_test(In& in, const Value& value, Args& args) { return contains(in, one(args, "in"), value); }

bool sameas(In&, const Value& value, Args& args) {
    const Value& other = one(args, "sameas");
    if (value.kind() != other.kind()) return false;
    switch (value.kind()) {
        case Kind::none: return true;
        case Kind::boolean:
        case Kind::integer: return value.as_int() == other.as_int();  // small integers are one object in CPython too
        case Kind::real: return value.as_real() == other.as_real();
        case Kind::string: return value.str().text == other.str().text;
        default: return value.as_object() == other.as_object();
    }
}

bool is_case(In& in, const Value& value, Property wanted, Property unwanted) {
    const Value text = in.to_string(value);
    bool cased = false;
    for (size_t at = 0; at < text.str().text.size();) {
        const auto c = base::utf8::decode(text.str().text, at);
        if (has_property(c.code_point, unwanted) || has_property(c.code_point, Property::title)) return false;
        cased = cased || has_property(c.code_point, wanted);
        at += c.length;
    }
    in.heap().work(8 * text.str().text.size());
    return cased;
}
bool lower(In& in, const Value& value, Args& args) {
    args.none("lower");
    return is_case(in, value, Property::lower, Property::upper);
}
bool upper(In& in, const Value& value, Args& args) {
    args.none("upper");
    return is_case(in, value, Property::upper, Property::lower);
}

bool is_filter(In&, const Value& value, Args& args) {
    args.none("filter");
    return value.is_string() && find_filter(value.str().text);
}
bool is_test(In&, const Value& value, Args& args) {
    args.none("test");
    return value.is_string() && find_test(value.str().text);
}

bool defined(const Value& v) { return !v.is_undefined(); }
bool undefined(const Value& v) { return v.is_undefined(); }
bool none(const Value& v) { return v.is_none(); }
bool boolean(const Value& v) { return v.is(Kind::boolean); }
bool true_(const Value& v) { return v.is(Kind::boolean) && v.as_bool(); }
bool false_(const Value& v) { return v.is(Kind::boolean) && !v.as_bool(); }
bool integer(const Value& v) { return v.is(Kind::integer); }
bool real(const Value& v) { return v.is(Kind::real); }
bool number(const Value& v) { return v.is_number(); }
bool string(const Value& v) { return v.is_string(); }
bool mapping(const Value& v) { return v.is(Kind::dict); }
bool callable(const Value& v) { return v.is_undefined() || (v.is(Kind::function) && v.function().is_callable()); }
bool escaped(const Value& v) { return v.is_string() && v.str().markup; }
bool sequence(const Value& v) {
    // len() and [] : an undefined value has both, a view of a dict has no [].
    return v.is_undefined() || v.is_string() || v.is(Kind::dict) || v.is(Kind::range) || (v.is(Kind::list) && !v.list().is_view());
}

constexpr TestEntry table[] = {
    {"!=", ne},
    {"<", lt},
    {"<=", le},
    {"==", eq},
    {">", gt},
    {">=", ge},
    {"boolean", plain<boolean>},
    {"callable", plain<callable>},
    {"defined", plain<defined>},
    {"divisibleby", divisibleby},
    {"eq", eq},
    {"equalto", eq},
    {"escaped", plain<escaped>},
    {"even", even},
    {"false", plain<false_>},
    {"filter", is_filter},
    {"float", plain<real>},
    {"ge", ge},
    {"greaterthan", gt},
    {"gt", gt},
    {"in", in_test},
    {"integer", plain<integer>},
    {"iterable", plain<is_iterable>},
    {"le", le},
    {"lessthan", lt},
    {"lower", lower},
    {"lt", lt},
    {"mapping", plain<mapping>},
    {"ne", ne},
    {"none", plain<none>},
    {"number", plain<number>},
    {"odd", odd},
    {"sameas", sameas},
    {"sequence", plain<sequence>},
    {"string", plain<string>},
    {"test", is_test},
    {"true", plain<true_>},
    {"undefined", plain<undefined>},
    {"upper", upper},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
    for (const TestEntry& entry : table) {
        if (entry.name == name) return &entry;
    }
    return nullptr;
}

bool Interpreter::call_test(std::string_view name, const Value& value, Args& args) {
    const TestEntry* entry = find_test(name);
    if (!entry) fail(cat("no test named '", base::printable(name), "'"));
    const Frame frame(*this);
    return entry->apply(*this, value, args);
}

}  // namespace text::jinja
