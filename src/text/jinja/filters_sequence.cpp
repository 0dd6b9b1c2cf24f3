// Filters over the elements of something iterable, one after the other.
#include "base/message.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/text.h"

namespace text::jinja {

using base::cat;

namespace {

Value first(Interpreter& in, const Value& value, Args& args) {
    args.none("first");
    Cursor cursor(in.heap(), value);
    Value item;
    return cursor.next(item) ? item : in.undefined("no first item, sequence was empty");
}

Value last(Interpreter& in, const Value& value, Args& args) {
    args.none("last");
    if (value.is(Kind::iterator) || value.is(Kind::function)) fail(cat("'", type_name(value), "' object is not reversible"));
    if (value.is(Kind::dict)) {
        const auto& entries = value.dict().entries;
        return entries.empty() ? in.undefined("no last item, sequence was empty") : entries.back().first;
    }
    if (value.is(Kind::list)) {  // the views too
        const auto& items = value.list().items;
        return items.empty() ? in.undefined("no last item, sequence was empty") : items.back();
    }
    if (!is_iterable(value)) fail(cat("'", type_name(value), "' object is not reversible"));
    if (length_of(value) == 0) return in.undefined("no last item, sequence was empty");
    return in.get_item(value, Value::integer(-1));
}

Value join(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("join", {"d", "attribute"}, out);
    const Value separator = out[0] ? in.to_string(*out[0]) : in.string("");
    const AttributePath path(in, out[1]);
    Builder text(in.heap());
    Cursor cursor(in.heap(), value);
    Value item;
    bool any = false;
    while (cursor.next(item)) {
        if (any) text.add(separator.str());
        any = true;
        in.print(text, path.get(item));
    }
    return text.finish();
}

Value list(Interpreter& in, const Value& value, Args& args) {
    args.none("list");
    return make_list(in.heap(), elements(in.heap(), value));
}

Value map(Interpreter& in, const Value& value, Args& args) {
    std::vector<Value> results;
    if (!truthy(value)) return make_iterator(in.heap(), {});
    Value item;
    if (args.positional.empty() && !args.named.empty()) {
        const Value* out[2];
        args.bind("map", {"attribute", "default"}, out);
        if (!out[0]) fail("map requires a filter argument");
        const AttributePath path(in, out[0], out[1] && !out[1]->is_none() ? out[1] : nullptr);
        for (Cursor cursor(in.heap(), value); cursor.next(item);) results.push_back(path.get(item));
        return make_iterator(in.heap(), std::move(results));
    }
    if (args.positional.empty()) fail("map requires a filter argument");
    const Value name = args.positional[0];
    args.positional.erase(args.positional.begin());
    const Str& filter = string_argument(name, "map's filter");
    for (Cursor cursor(in.heap(), value); cursor.next(item);) {
        Args copy = args;
        results.push_back(in.call_filter(filter.text, item, copy));
    }
    return make_iterator(in.heap(), std::move(results));
}

Value choose(Interpreter& in, const Value& value, Args& args, bool wanted, bool by_attribute) {
    if (!truthy(value)) return make_iterator(in.heap(), {});
    if (!args.named.empty() && args.positional.empty()) fail("select and reject take a test by position");
    size_t used = 0;
    if (by_attribute && args.positional.empty()) fail("missing parameter for attribute name");
    const AttributePath path(in, by_attribute ? &args.positional[used++] : nullptr);
    Value test;
    const bool has_test = used < args.positional.size();
    if (has_test) test = args.positional[used++];
    Args rest;
    rest.positional.assign(args.positional.begin() + static_cast<std::ptrdiff_t>(used), args.positional.end());
    rest.named = args.named;
    std::vector<Value> results;
    Value item;
    for (Cursor cursor(in.heap(), value); cursor.next(item);) {
        const Value subject = path.get(item);
        bool holds;
        if (has_test) {
            Args copy = rest;
            holds = in.call_test(string_argument(test, "a test's name").text, subject, copy);
        } else {
            holds = truthy(subject);
        }
        if (holds == wanted) results.push_back(item);
    }
    return make_iterator(in.heap(), std::move(results));
}

Value select(Interpreter& in, const Value& value, Args& args) { return choose(in, value, args, true, false); }
Value reject(Interpreter& in, const Value& value, Args& args) { return choose(in, value, args, false, false); }
Value selectattr(Interpreter& in, const Value& value, Args& args) { return choose(in, value, args, true, true); }
Value rejectattr(Interpreter& in, const Value& value, Args& args) { return choose(in, value, args, false, true); }

Value reverse(Interpreter& in, const Value& value, Args& args) {
    args.none("reverse");
    if (!is_iterable(value)) fail("argument must be iterable");
    std::vector<Value> items = elements(in.heap(), value);
    std::vector<Value> backwards(items.rbegin(), items.rend());
    if (value.is_string()) {
        Builder text(in.heap());
        for (const Value& c : backwards) text.add(c.str());
        return marked(text.finish(), value.str());
    }
    if (value.is(Kind::iterator)) return make_list(in.heap(), std::move(backwards));
    return make_iterator(in.heap(), std::move(backwards), "reversed");
}

Value sum(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("sum", {"attribute", "start"}, out);
    const AttributePath path(in, out[0]);
    Value total = out[1] ? *out[1] : Value::integer(0);
    if (total.is_string()) fail("sum() can't sum strings [use ''.join(seq) instead]");
    Cursor cursor(in.heap(), value);
    Value item;
    while (cursor.next(item)) total = binary(in, Op::add, total, path.get(item));
    return total;
}

Value items(Interpreter& in, const Value& value, Args& args) {
    args.none("items");
    std::vector<Value> pairs;
    if (!value.is_undefined()) {
        if (!value.is(Kind::dict)) fail("can only get item pairs from a mapping");
        for (const auto& [key, item] : value.dict().entries) pairs.push_back(make_list(in.heap(), {key, item}, Flavor::tuple));
    }
    return make_iterator(in.heap(), std::move(pairs));
}

Value batch(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("batch", {"linecount", "fill_with"}, out, 1);
    const int64_t count = int_argument(*out[0], "batch's linecount");
    std::vector<Value> rows;
    std::vector<Value> row;
    Cursor cursor(in.heap(), value);
    Value item;
    while (cursor.next(item)) {
        if (static_cast<int64_t>(row.size()) == count) {
            rows.push_back(make_list(in.heap(), std::move(row)));
            row.clear();
        }
        row.push_back(item);
    }
    if (!row.empty()) {
        if (out[1] && !out[1]->is_none()) {
            while (static_cast<int64_t>(row.size()) < count) {
                in.heap().step();
                row.push_back(*out[1]);
            }
        }
        rows.push_back(make_list(in.heap(), std::move(row)));
    }
    return make_iterator(in.heap(), std::move(rows));
}

Value slice(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("slice", {"slices", "fill_with"}, out, 1);
    const int64_t slices = int_argument(*out[0], "slice's slices");
    const std::vector<Value> all = elements(in.heap(), value);
    if (slices == 0) fail("integer division or modulo by zero");
    std::vector<Value> rows;
    const int64_t n = static_cast<int64_t>(all.size());
    const int64_t each = slices > 0 ? n / slices : 0, longer = slices > 0 ? n % slices : 0;
    int64_t at = 0;
    for (int64_t i = 0; i < slices; ++i) {
        in.heap().step();
        const int64_t length = each + (i < longer);
        std::vector<Value> row(all.begin() + at, all.begin() + at + length);
        at += length;
        if (out[1] && !out[1]->is_none() && i >= longer) row.push_back(*out[1]);
        rows.push_back(make_list(in.heap(), std::move(row)));
    }
    return make_iterator(in.heap(), std::move(rows));
}

constexpr FilterEntry table[] = {
    {"batch", batch}, {"first", first},   {"items", items},           {"join", join},       {"last", last},     {"list", list},
    {"map", map},     {"reject", reject}, {"rejectattr", rejectattr}, {"reverse", reverse}, {"select", select}, {"selectattr", selectattr},
    {"slice", slice}, {"sum", sum},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return table; }

}  // namespace text::jinja
