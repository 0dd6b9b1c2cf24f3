// Filters that need order: sort, min, max, unique, groupby, dictsort.
#include <algorithm>

#include "base/message.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"

namespace text::jinja {

using base::cat;

namespace {

bool flag(const Value* value) { return value && truthy(*value); }

struct Keyed {
    Value key, item;
};

// Stable, by key. A comparison that fails in the middle leaves no harm: the values are only moved about.
void sort_keyed(Interpreter& in, std::vector<Keyed>& rows, bool descending) {
    std::vector<size_t> order(rows.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        in.heap().step();
        return descending ? compare(rows[b].key, rows[a].key, "<") == -1 : compare(rows[a].key, rows[b].key, "<") == -1;
    });
    std::vector<Keyed> sorted;
    sorted.reserve(rows.size());
    for (const size_t i : order) sorted.push_back(rows[i]);
    rows.swap(sorted);
}

std::vector<Keyed> with_keys(Interpreter& in, const Value& value, const AttributePath& path, bool case_sensitive) {
    std::vector<Keyed> rows;
    Cursor cursor(in.heap(), value);
    Value item;
    while (cursor.next(item)) {
        Value key = path.get(item);
        rows.push_back({case_sensitive ? std::move(key) : ignore_case(in, key), item});
    }
    return rows;
}

Value sort(Interpreter& in, const Value& value, Args& args) {
    const Value* out[3];
    args.bind("sort", {"reverse", "case_sensitive", "attribute"}, out);
    const bool case_sensitive = flag(out[1]);
    // 'a,b': by a, then by b.
    std::vector<AttributePath> paths;
    if (out[2] && out[2]->is_string()) {
        std::string_view rest = out[2]->str().text;
        while (true) {
            const size_t comma = rest.find(',');
            const Value part = in.string(std::string(rest.substr(0, comma)));
            paths.emplace_back(in, &part);
            if (comma == std::string_view::npos) break;
            rest.remove_prefix(comma + 1);
        }
    } else {
        paths.emplace_back(in, out[2]);
    }
    std::vector<Keyed> rows;
    Cursor cursor(in.heap(), value);
    Value item;
    while (cursor.next(item)) {
        std::vector<Value> keys;
        for (const AttributePath& path : paths) {
            Value key = path.get(item);
            keys.push_back(case_sensitive ? std::move(key) : ignore_case(in, key));
        }
        rows.push_back({make_list(in.heap(), std::move(keys)), item});
    }
    sort_keyed(in, rows, flag(out[0]));
    std::vector<Value> sorted;
    for (Keyed& row : rows) sorted.push_back(std::move(row.item));
    return make_list(in.heap(), std::move(sorted));
}

template <int sign>
Value extreme(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind(sign < 0 ? "min" : "max", {"case_sensitive", "attribute"}, out);
    const std::vector<Keyed> rows = with_keys(in, value, AttributePath(in, out[1]), flag(out[0]));
    if (rows.empty()) return in.undefined("no aggregated item, sequence was empty");
    size_t best = 0;
    for (size_t i = 1; i < rows.size(); ++i) {
        if (compare(rows[i].key, rows[best].key, sign < 0 ? "<" : ">") == sign) best = i;
    }
    return rows[best].item;
}

Value unique(Interpreter& in, const Value& value, Args& args) {
    const Value* out[2];
    args.bind("unique", {"case_sensitive", "attribute"}, out);
    Value seen = make_dict(in.heap());
    std::vector<Value> items;
    for (Keyed& row : with_keys(in, value, AttributePath(in, out[1]), flag(out[0]))) {
        if (!is_hashable(row.key)) fail(cat("unhashable type: '", type_name(row.key), "'"));
        if (seen.dict().find(row.key)) continue;
        seen.dict().set(row.key, Value());
        items.push_back(std::move(row.item));
    }
    return make_iterator(in.heap(), std::move(items));
}

Value groupby(Interpreter& in, const Value& value, Args& args) {
    const Value* out[3];
    args.bind("groupby", {"attribute", "default", "case_sensitive"}, out, 1);
    const Value* fallback = out[1] && !out[1]->is_none() ? out[1] : nullptr;
    const AttributePath path(in, out[0], fallback);
    std::vector<Keyed> rows = with_keys(in, value, path, flag(out[2]));
    sort_keyed(in, rows, false);
    std::vector<Value> groups;
    for (size_t begin = 0; begin < rows.size();) {
        size_t end = begin + 1;
        while (end < rows.size() && equal(rows[end].key, rows[begin].key)) ++end;
        std::vector<Value> members;
        for (size_t i = begin; i < end; ++i) members.push_back(rows[i].item);
        groups.push_back(make_list(in.heap(), {path.get(members[0]), make_list(in.heap(), std::move(members))}, Flavor::group));
        begin = end;
    }
    return make_list(in.heap(), std::move(groups));
}

Value dictsort(Interpreter& in, const Value& value, Args& args) {
    const Value* out[3];
    args.bind("dictsort", {"case_sensitive", "by", "reverse"}, out);
    const std::string_view by = out[1] ? string_argument(*out[1], "dictsort's by").text : "key";
    if (by != "key" && by != "value") fail("you can only sort by either \"key\" or \"value\"");
    if (value.is_undefined()) fail(value.undefined().message);
    if (!value.is(Kind::dict)) fail(cat("'", type_name(value), " object' has no attribute 'items'"));
    std::vector<Keyed> rows;
    for (const auto& [key, item] : value.dict().entries) {
        const Value& sort_by = by == "key" ? key : item;
        rows.push_back({flag(out[0]) ? sort_by : ignore_case(in, sort_by), make_list(in.heap(), {key, item}, Flavor::tuple)});
    }
    sort_keyed(in, rows, flag(out[2]));
    std::vector<Value> pairs;
    for (Keyed& row : rows) pairs.push_back(std::move(row.item));
    return make_list(in.heap(), std::move(pairs));
}

constexpr FilterEntry table[] = {
    {"dictsort", dictsort}, {"groupby", groupby}, {"max", extreme<1>}, {"min", extreme<-1>}, {"sort", sort}, {"unique", unique},
};

}  // namespace

std::span<const FilterEntry> group_filters() { return table; }

}  // namespace text::jinja
