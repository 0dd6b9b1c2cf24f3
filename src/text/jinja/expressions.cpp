#include <algorithm>

#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/tests.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

Value Interpreter::eval(const Expr& expr) {
    const Frame frame(*this);
    heap_.step();
    position_ = expr.position;
    switch (expr.kind) {
        case ExprKind::none: return Value();
        case ExprKind::boolean: return Value::boolean(static_cast<const NumberExpr&>(expr).integer != 0);
        case ExprKind::integer: return Value::integer(static_cast<const NumberExpr&>(expr).integer);
        case ExprKind::real: return Value::real(static_cast<const NumberExpr&>(expr).real);
        case ExprKind::string:
            return Value::object(Kind::string, new Str(heap_, Str::Borrowed(), static_cast<const StringExpr&>(expr).value, false));
        case ExprKind::name: return lookup(static_cast<const NameExpr&>(expr).name);
        case ExprKind::tuple:
        case ExprKind::list:
        case ExprKind::dict: return eval_items(static_cast<const ItemsExpr&>(expr));
        case ExprKind::logical: return eval_logical(static_cast<const ChainExpr&>(expr));
        case ExprKind::negation: return Value::boolean(!truthy(eval(*static_cast<const UnaryExpr&>(expr).operand)));
        case ExprKind::compare: return eval_compare(static_cast<const ChainExpr&>(expr));
        case ExprKind::chain: return eval_chain(static_cast<const ChainExpr&>(expr));
        case ExprKind::unary: {
            const auto& source = static_cast<const UnaryExpr&>(expr);
            const Value operand = eval(*source.operand);
            position_ = expr.position;
            return unary(*this, source.op, operand);
        }
        case ExprKind::conditional: {
            const auto& source = static_cast<const ConditionalExpr&>(expr);
            if (truthy(eval(*source.test))) return eval(*source.then);
            if (source.otherwise) return eval(*source.otherwise);
            return undefined("the inline if-expression evaluated to false and no else section was defined");
        }
        case ExprKind::slice: fail("a slice stands only in a subscript");
        case ExprKind::postfix: return eval_postfix(static_cast<const PostfixExpr&>(expr));
    }
    return Value();
}

Value Interpreter::eval_items(const ItemsExpr& source) {
    if (source.kind == ExprKind::dict) {
        Value dict = make_dict(heap_);
        for (size_t i = 0; i + 1 < source.items.size(); i += 2) {
            Value key = eval(*source.items[i]);
            if (!is_hashable(key)) fail(cat("unhashable type: '", type_name(key), "'"));
            Value value = eval(*source.items[i + 1]);
            dict.dict().set(std::move(key), std::move(value));
        }
        return dict;
    }
    std::vector<Value> items;
    items.reserve(source.items.size());
    for (const ExprPtr& item : source.items) items.push_back(eval(*item));
    return make_list(heap_, std::move(items), source.kind == ExprKind::tuple ? Flavor::tuple : Flavor::list);
}

Value Interpreter::eval_logical(const ChainExpr& chain) {
    Value value = eval(*chain.first);
    for (const Step& step : chain.steps) {
        if (truthy(value) == (step.op == Op::logical_or)) return value;
        value = eval(*step.operand);
    }
    return value;
}

Value Interpreter::eval_compare(const ChainExpr& chain) {
    Value left = eval(*chain.first);
    bool result = true;
    for (const Step& step : chain.steps) {  // a < b < c is a < b and b < c
        Value right = eval(*step.operand);
        position_ = step.position;
        switch (step.op) {
            case Op::eq: result = equal(left, right); break;
            case Op::ne: result = !equal(left, right); break;
            case Op::in: result = contains(*this, right, left); break;
            case Op::not_in: result = !contains(*this, right, left); break;
            case Op::lt: result = compare(left, right, "<") == -1; break;
            case Op::gt: result = compare(left, right, ">") == 1; break;
            case Op::le: {
                const int order = compare(left, right, "<=");
                result = order == -1 || order == 0;
                break;
            }
            default: {
                const int order = compare(left, right, ">=");
                result = order == 1 || order == 0;
                break;
            }
        }
        if (!result) break;
        left = std::move(right);
    }
    return Value::boolean(result);
}

// a + b + c of strings, and a ~ b ~ c, grow one string instead of making a new one for each operator: a long chain
// would cost the square of its length.
Value Interpreter::eval_chain(const ChainExpr& chain) {
    Value left = eval(*chain.first);
    std::optional<Builder> growing;
    for (const Step& step : chain.steps) {
        const Value right = eval(*step.operand);
        position_ = step.position;
        const bool strings =
            step.op == Op::add && (growing || (left.is_string() && !left.str().markup)) && right.is_string() && !right.str().markup;
        if (strings || step.op == Op::concat) {
            if (!growing) {
                growing.emplace(heap_);
                print(*growing, left);
            }
            print(*growing, right);
            continue;
        }
        if (growing) {
            left = growing->finish();
            growing.reset();
        }
        left = binary(*this, step.op, left, right);
    }
    return growing ? growing->finish() : left;
}

Value Interpreter::eval_postfix(const PostfixExpr& expr, const Value* block_text) {
    Value value = expr.base ? eval(*expr.base) : *block_text;
    for (const Link& link : expr.links) value = eval_link(link, value);
    return value;
}

Value Interpreter::eval_link(const Link& link, Value& value) {
    heap_.step();
    position_ = link.position;
    switch (link.kind) {
        case LinkKind::attribute: return get_attribute(value, name(link.name));
        case LinkKind::item: {
            if (link.item->kind == ExprKind::slice) return eval_slice(static_cast<const SliceExpr&>(*link.item), value);
            const Value key = eval(*link.item);
            position_ = link.position;
            return get_item(value, key);
        }
        case LinkKind::call: return eval_call(link, value);
        case LinkKind::filter: {
            if (!link.filter) fail(cat("no filter named '", base::printable(name(link.name)), "'"));
            Args args;
            if (link.args) eval_args(*link.args, args);
            position_ = link.position;
            return link.filter->apply(*this, value, args);
        }
        case LinkKind::test:
        case LinkKind::not_test: {
            if (!link.test) fail(cat("no test named '", base::printable(name(link.name)), "'"));
            Args args;
            if (link.args) eval_args(*link.args, args);
            position_ = link.position;
            return Value::boolean(link.test->apply(*this, value, args) == (link.kind == LinkKind::test));
        }
    }
    return Value();
}

Value Interpreter::eval_call(const Link& link, const Value& callee, const Value* caller) {
    Args args;
    eval_args(*link.args, args);
    if (caller) args.named.emplace_back("caller", *caller);
    position_ = link.position;
    return call(callee, args);
}

void Interpreter::eval_args(const CallArgs& source, Args& args) {
    args.positional.reserve(source.positional.size());
    for (const ExprPtr& expr : source.positional) args.positional.push_back(eval(*expr));
    const auto add_named = [&](std::string name, Value value) {
        heap_.step(args.named.size() / 16);
        for (const auto& [there, old] : args.named) {
            if (there == name) fail(cat("keyword argument '", base::printable(name), "' is given twice"));
        }
        args.named.emplace_back(std::move(name), std::move(value));
    };
    for (const Keyword& keyword : source.named) add_named(keyword.name, eval(*keyword.value));
    if (source.more_positional) {
        for (Value& item : elements(heap_, eval(*source.more_positional))) args.positional.push_back(std::move(item));
    }
    if (source.more_named) {
        const Value more = eval(*source.more_named);
        if (!more.is(Kind::dict)) fail("argument after ** must be a mapping");
        for (const auto& [key, value] : more.dict().entries) {
            if (!key.is_string()) fail("keywords must be strings");
            args.user_names = args.user_names || has_user_bytes(key.str());
            add_named(std::string(key.str().text), value);
        }
    }
}

Value Interpreter::call(const Value& callee, Args& args) {
    const Frame frame(*this);
    heap_.step(1 + args.positional.size() / 4);
    if (callee.is_undefined()) fail(callee.undefined().message);
    if (!callee.is(Kind::function) || !callee.function().is_callable()) fail(cat("'", type_name(callee), "' object is not callable"));
    const Value keep = callee;  // the callee may drop the last other reference to itself
    return keep.function().call(*this, args);
}

// --- attributes and items

namespace {

// How Jinja names a value in "... has no attribute ...".
std::string object_name(const Value& value) { return value.is_none() ? "None" : cat(type_name(value), " object"); }

// A method of a value; null when there is none.
Native find_method(const Value& value, std::string_view name) {
    switch (value.kind()) {
        case Kind::string: return find_string_method(name);
        case Kind::list: return value.list().is_view() ? nullptr : find_list_method(name, value.list().is_tuple());
        case Kind::dict: return find_dict_method(name);
        default: return nullptr;
    }
}

// The attribute that Python's getattr would find.
bool find_attribute(Interpreter& in, const Value& object, std::string_view name, Value& result) {
    if (name.starts_with("__")) {
        fail(cat("access to attribute '", base::printable(name), "' of '", type_name(object), "' object is unsafe"));
    }
    if (const Native method = find_method(object, name)) {
        result = make_native(in.heap(), method, object, name);
        return true;
    }
    if (object.is(Kind::function)) return object.function().attribute(in, name, result);
    if (object.is(Kind::space)) {
        const Value* found = object.space().attributes.dict().find(name);
        if (found) result = *found;
        return found != nullptr;
    }
    if (object.is_number()) {
        const bool whole = object.is_int_like();
        if (name == "real" || (whole && name == "numerator")) {
            result = whole ? Value::integer(object.as_int()) : object;
        } else if (name == "imag") {
            result = whole ? Value::integer(0) : Value::real(0);
        } else if (whole && name == "denominator") {
            result = Value::integer(1);
        } else {
            return false;
        }
        return true;
    }
    if (object.is(Kind::list) && object.list().flavor == Flavor::group && (name == "grouper" || name == "list")) {
        result = object.list().items[name == "list"];
        return true;
    }
    return false;
}

}  // namespace

Value Interpreter::get_attribute(const Value& object, std::string_view name) {
    if (object.is_undefined()) fail(object.undefined().message);
    Value result;
    if (find_attribute(*this, object, name, result)) return result;
    if (object.is(Kind::dict)) {
        if (const Value* found = object.dict().find(name)) return *found;
    }
    return undefined(cat("'", object_name(object), "' has no attribute '", base::printable(name), "'"));
}

Value Interpreter::get_item(const Value& object, const Value& key) {
    switch (object.kind()) {
        case Kind::undefined: fail(object.undefined().message);
        case Kind::dict:
            if (is_hashable(key)) {
                if (const Value* found = object.dict().find(key)) return *found;
            }
            break;
        case Kind::list: {
            const List& list = object.list();
            if (!key.is_int_like() || list.is_view()) break;
            const int64_t n = static_cast<int64_t>(list.items.size());
            const int64_t i = key.as_int() < 0 ? key.as_int() + n : key.as_int();
            if (i >= 0 && i < n) return list.items[static_cast<size_t>(i)];
            break;
        }
        case Kind::range: {
            if (!key.is_int_like()) break;
            const Range& range = object.range();
            const int64_t i = key.as_int() < 0 ? key.as_int() + range.length : key.as_int();
            if (i >= 0 && i < range.length) return Value::integer(range.at(i));
            break;
        }
        case Kind::string: {
            if (!key.is_int_like()) break;
            const Str& str = object.str();
            const int64_t n = static_cast<int64_t>(str.length());
            const int64_t i = key.as_int() < 0 ? key.as_int() + n : key.as_int();
            if (i < 0 || i >= n) break;
            const size_t begin = byte_of(str, static_cast<size_t>(i));
            return marked(substring(heap_, str, begin, begin + base::utf8::decode(str.text, begin).length), str);
        }
        default: break;
    }
    if (key.is_string()) {
        Value result;
        if (find_attribute(*this, object, key.str().text, result)) return result;
        return undefined(cat("'", object_name(object), "' has no attribute '", base::printable(key.str().text), "'"));
    }
    return undefined(cat(object_name(object), " has no such element"));
}

// --- slices

Value Interpreter::eval_slice(const SliceExpr& slice, const Value& object) {
    const uint32_t where = position_;
    const auto bound = [&](const ExprPtr& expr) -> std::optional<int64_t> {
        if (!expr) return std::nullopt;
        const Value value = eval(*expr);
        position_ = where;
        if (value.is_none()) return std::nullopt;
        if (value.is_undefined()) fail(value.undefined().message);
        if (!value.is_int_like()) fail("slice indices must be integers or None");
        return value.as_int();
    };
    const auto start = bound(slice.start), stop = bound(slice.stop);
    const int64_t step = bound(slice.step).value_or(1);
    position_ = where;
    if (object.is_undefined()) fail(object.undefined().message);
    const bool sliceable = object.is_string() || object.is(Kind::range) || (object.is(Kind::list) && !object.list().is_view());
    if (!sliceable) fail(cat("'", type_name(object), "' object can't be sliced"));
    if (step == 0) fail("slice step cannot be zero");
    const Indices indices = slice_indices(length_of(object), start, stop, step);

    if (object.is(Kind::range)) {
        const Range& range = object.range();
        int64_t first = 0, new_step = 0, end = 0;
        if (__builtin_mul_overflow(range.step, step, &new_step) || __builtin_mul_overflow(indices.start, range.step, &first) ||
            __builtin_add_overflow(range.start, first, &first) || __builtin_mul_overflow(indices.stop, range.step, &end) ||
            __builtin_add_overflow(range.start, end, &end)) {
            fail("integer overflow in a slice of a range");
        }
        return Value::object(Kind::range, new Range(heap_, first, end, new_step, indices.count));
    }
    if (object.is(Kind::list)) {
        const List& list = object.list();
        heap_.step(static_cast<uint64_t>(indices.count) / 16);
        std::vector<Value> items;
        items.reserve(static_cast<size_t>(indices.count));
        for (int64_t k = 0; k < indices.count; ++k) items.push_back(list.items[static_cast<size_t>(indices.start + k * step)]);
        return make_list(heap_, std::move(items), list.is_tuple() ? Flavor::tuple : Flavor::list);
    }
    const Str& str = object.str();
    if (indices.count == 0) return string("");
    if (step == 1) {
        const size_t begin = byte_of(str, static_cast<size_t>(indices.start));
        const size_t end = byte_of(str, static_cast<size_t>(indices.start + indices.count), begin, static_cast<size_t>(indices.start));
        return marked(substring(heap_, str, begin, end), str);
    }
    // Offsets of all characters, then the chosen ones in order.
    std::vector<uint32_t> offsets;
    offsets.reserve(str.length() + 1);
    for (size_t at = 0; at < str.text.size(); at += base::utf8::decode(str.text, at).length) offsets.push_back(static_cast<uint32_t>(at));
    offsets.push_back(static_cast<uint32_t>(str.text.size()));
    heap_.work(str.text.size() * 4);
    Builder out(heap_);
    for (int64_t k = 0; k < indices.count; ++k) {
        const size_t i = static_cast<size_t>(indices.start + k * step);
        out.add(str, offsets[i], offsets[i + 1]);
    }
    return marked(out.finish(), str);
}

}  // namespace text::jinja
