// The methods of dict, list and tuple. Those that change a value are built although transformers' sandbox refuses them:
// templates written for other engines use them, and the values are copies that live for one rendering.
#include <algorithm>

#include "base/message.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/filters.h"
#include "text/jinja/globals.h"

namespace text::jinja {

using base::cat;

namespace {

void must_hash(const Value& key) {
    if (!is_hashable(key)) fail(cat("unhashable type: '", type_name(key), "'"));
}

std::string key_text(Interpreter& in, const Value& key) {
    Builder text(in.heap());
    in.repr(text, key);
    return base::printable(text.text());
}

// --- dict

template <Flavor flavor>
Value view(Interpreter& in, const Value& self, Args& args) {
    args.none("a view of a dict");
    std::vector<Value> items;
    for (const auto& [key, value] : self.dict().entries) {
        items.push_back(flavor == Flavor::dict_keys     ? key
                        : flavor == Flavor::dict_values ? value
                                                        : make_list(in.heap(), {key, value}, Flavor::tuple));
    }
    return make_list(in.heap(), std::move(items), flavor);
}

Value get(Interpreter&, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("get", {"key", "default"}, out, 1);
    must_hash(*out[0]);
    if (const Value* found = self.dict().find(*out[0])) return *found;
    return out[1] ? *out[1] : Value();
}

Value pop(Interpreter& in, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("pop", {"key", "default"}, out, 1);
    must_hash(*out[0]);
    const Value* found = self.dict().find(*out[0]);
    if (!found) {
        if (!out[1]) fail(cat("KeyError: ", key_text(in, *out[0])));
        return *out[1];
    }
    Value value = *found;
    self.dict().erase(*out[0]);
    return value;
}

Value popitem(Interpreter& in, const Value& self, Args& args) {
    args.none("popitem");
    auto& entries = self.dict().entries;
    if (entries.empty()) fail("popitem(): dictionary is empty");
    const auto [key, value] = entries.back();
    self.dict().erase(key);
    return make_list(in.heap(), {key, value}, Flavor::tuple);
}

Value setdefault(Interpreter&, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("setdefault", {"key", "default"}, out, 1);
    must_hash(*out[0]);
    if (const Value* found = self.dict().find(*out[0])) return *found;
    const Value value = out[1] ? *out[1] : Value();
    self.dict().set(*out[0], value);
    return value;
}

}  // namespace

// dict(...), dict.update(...): a mapping or pairs by position, then names.
void update_dict(Interpreter& in, Dict& dict, Args& args, std::string_view what) {
    if (args.positional.size() > 1) fail(cat(what, " expected at most 1 argument, got ", args.positional.size()));
    if (!args.positional.empty()) {
        const Value source = args.positional[0];
        if (source.is(Kind::dict)) {
            const auto entries = source.dict().entries;  // a copy: it may be the same dict
            in.heap().step(entries.size() / 4);
            for (const auto& [key, value] : entries) dict.set(key, value);
        } else if (!source.is_undefined()) {
            for (const Value& pair : elements(in.heap(), source)) {
                const std::vector<Value> parts = elements(in.heap(), pair);
                if (parts.size() != 2) fail(cat("dictionary update sequence element has length ", parts.size(), "; 2 is required"));
                must_hash(parts[0]);
                dict.set(parts[0], parts[1]);
            }
        }
    }
    for (auto& [name, value] : args.named) dict.set(in.string(name, args.user_names), std::move(value));
}

namespace {

Value update(Interpreter& in, const Value& self, Args& args) {
    update_dict(in, self.dict(), args, "update");
    return Value();
}

Value clear_dict(Interpreter&, const Value& self, Args& args) {
    args.none("clear");
    while (!self.dict().entries.empty()) {
        const Value key = self.dict().entries.back().first;
        self.dict().erase(key);
    }
    return Value();
}

Value copy_dict(Interpreter& in, const Value& self, Args& args) {
    args.none("copy");
    Value copy = make_dict(in.heap());
    for (const auto& [key, value] : self.dict().entries) copy.dict().set(key, value);
    return copy;
}

// --- list

size_t place(const List& list, int64_t i) {
    const int64_t n = static_cast<int64_t>(list.items.size());
    if (i < 0) i += n;
    if (i < 0 || i >= n) fail("list index out of range");
    return static_cast<size_t>(i);
}

void erase_at(List& list, size_t at) {
    list.heap.step(list.items.size() / 64);
    list.items.erase(list.items.begin() + static_cast<std::ptrdiff_t>(at));
    list.heap.give_values(1);
    --list.counted;
}

Value append(Interpreter&, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("append", {"object"}, out, 1);
    self.list().push(*out[0]);
    return Value();
}

Value extend(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("extend", {"iterable"}, out, 1);
    for (Value& item : elements(in.heap(), *out[0])) self.list().push(std::move(item));
    return Value();
}

Value insert(Interpreter&, const Value& self, Args& args) {
    const Value* out[2];
    args.bind("insert", {"index", "object"}, out, 2);
    List& list = self.list();
    const int64_t n = static_cast<int64_t>(list.items.size());
    int64_t at = int_argument(*out[0], "insert's index");
    if (at < 0) at = at < -n ? 0 : at + n;
    list.heap.step(list.items.size() / 64);
    list.push(*out[1]);
    std::rotate(list.items.begin() + std::min(at, n), list.items.end() - 1, list.items.end());
    return Value();
}

Value pop_list(Interpreter&, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("pop", {"index"}, out);
    if (self.list().items.empty()) fail("pop from empty list");
    const size_t at = place(self.list(), out[0] ? int_argument(*out[0], "pop's index") : -1);
    Value item = self.list().items[at];
    erase_at(self.list(), at);
    return item;
}

Value remove(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("remove", {"value"}, out, 1);
    List& list = self.list();
    for (size_t i = 0; i < list.items.size(); ++i) {
        in.heap().step();
        if (!equal(list.items[i], *out[0])) continue;
        erase_at(list, i);
        return Value();
    }
    fail("list.remove(x): x not in list");
}

Value clear_list(Interpreter&, const Value& self, Args& args) {
    args.none("clear");
    List& list = self.list();
    std::vector<Value> gone;
    gone.swap(list.items);
    list.heap.give_values(list.counted);
    list.counted = 0;
    return Value();
}

Value copy_list(Interpreter& in, const Value& self, Args& args) {
    args.none("copy");
    return make_list(in.heap(), self.list().items);
}

Value reverse(Interpreter& in, const Value& self, Args& args) {
    args.none("reverse");
    in.heap().step(self.list().items.size() / 16);
    std::reverse(self.list().items.begin(), self.list().items.end());
    return Value();
}

Value sort(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("sort", {"reverse"}, out);
    Args filter_args;
    filter_args.positional = {Value::boolean(out[0] && truthy(*out[0])), Value::boolean(true)};  // reverse, case_sensitive
    const Value sorted = in.call_filter("sort", self, filter_args);
    if (sorted.list().items.size() == self.list().items.size()) self.list().items = sorted.list().items;
    return Value();
}

Value index(Interpreter& in, const Value& self, Args& args) {
    const Value* out[3];
    args.bind("index", {"value", "start", "stop"}, out, 1);
    const auto& items = self.list().items;
    const int64_t n = static_cast<int64_t>(items.size());
    const auto bound = [&](const Value* value, int64_t otherwise) {
        if (!value) return otherwise;
        const int64_t i = int_argument(*value, "a position");
        return i < 0 ? std::max<int64_t>(i < -n ? 0 : i + n, 0) : std::min(i, n);
    };
    const int64_t stop = bound(out[2], n);
    for (int64_t i = bound(out[1], 0); i < stop; ++i) {
        in.heap().step();
        if (equal(items[static_cast<size_t>(i)], *out[0])) return Value::integer(i);
    }
    fail(cat(key_text(in, *out[0]), " is not in list"));
}

Value count(Interpreter& in, const Value& self, Args& args) {
    const Value* out[1];
    args.bind("count", {"value"}, out, 1);
    int64_t n = 0;
    for (const Value& item : self.list().items) {
        in.heap().step();
        n += equal(item, *out[0]);
    }
    return Value::integer(n);
}

struct Row {
    std::string_view name;
    Native method;
};
constexpr Row dict_table[] = {
    {"clear", clear_dict},
    {"copy", copy_dict},
    {"get", get},
    {"items", view<Flavor::dict_items>},
    {"keys", view<Flavor::dict_keys>},
    {"pop", pop},
    {"popitem", popitem},
    {"setdefault", setdefault},
    {"update", update},
    {"values", view<Flavor::dict_values>},
};
constexpr Row tuple_table[] = {{"count", count}, {"index", index}};
constexpr Row list_table[] = {
    {"append", append}, {"clear", clear_list}, {"copy", copy_list},  {"extend", extend}, {"insert", insert},
    {"pop", pop_list},  {"remove", remove},    {"reverse", reverse}, {"sort", sort},
};

template <size_t N>
Native find_row(const Row (&rows)[N], std::string_view name) {
    for (const Row& row : rows) {
        if (row.name == name) return row.method;
    }
    return nullptr;
}

}  // namespace

Native find_dict_method(std::string_view name) { return find_row(dict_table, name); }

Native find_list_method(std::string_view name, bool is_tuple) {
    if (const Native method = find_row(tuple_table, name)) return method;
    return is_tuple ? nullptr : find_row(list_table, name);
}

}  // namespace text::jinja
