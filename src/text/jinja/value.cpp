#include "text/jinja/value.h"

#include <cmath>

#include "base/check.h"
#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"
#include "text/jinja/cursor.h"
#include "text/jinja/failure.h"
#include "text/jinja/function.h"

namespace text::jinja {

using base::cat;

namespace {

constexpr size_t string_overhead_bytes = 32;  // so that millions of one-byte strings count as more than their bytes
constexpr size_t small_dict_entries = 16;

}  // namespace

Str::Str(Heap& heap, std::string bytes, UserRanges user_ranges) : Object(heap), user(std::move(user_ranges)), own_(std::move(bytes)) {
    text = own_;
    heap.take_bytes(text.size() + string_overhead_bytes);
    counted_ = true;
}

Str::Str(Heap& heap, Borrowed, std::string_view borrowed, bool from_user) : Object(heap), text(borrowed) {
    CHECK_LT(text.size(), size_t{UINT32_MAX});
    if (from_user && !text.empty()) user.push_back({0, static_cast<uint32_t>(text.size())});
}

Str::~Str() {
    if (counted_) heap.give_bytes(text.size() + string_overhead_bytes);
}

size_t Str::length() const {
    if (length_ == SIZE_MAX) {
        length_ = 0;
        for (const char c : text) length_ += (c & 0xC0) != 0x80;
        heap.work(text.size());
    }
    return length_;
}

List::List(Heap& heap, std::vector<Value> values, Flavor kind) : Object(heap), items(std::move(values)), flavor(kind) {
    heap.take_values(items.size());
    counted = items.size();
}
List::~List() { heap.give_values(counted); }

void List::push(Value value) {
    heap.take_values(1);
    ++counted;
    items.push_back(std::move(value));
}

Iterator::Iterator(Heap& heap, std::vector<Value> values, std::string_view python_name)
    : Object(heap), items(std::move(values)), counted(0), name(python_name) {
    heap.take_values(items.size());
    counted = items.size();
}
Iterator::~Iterator() { heap.give_values(counted); }

Dict::~Dict() { heap.give_values(entries.size()); }

size_t Dict::position(std::string_view key) const {
    if (indexed_) {
        const auto it = index_.find(key);
        return it == index_.end() ? SIZE_MAX : it->second;
    }
    for (size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].first.is_string() && entries[i].first.str().text == key) return i;
    }
    return SIZE_MAX;
}

size_t Dict::position(const Value& key) const {
    if (key.is_string()) return position(key.str().text);
    if (other_keys_ == 0) return SIZE_MAX;
    heap.step(entries.size() / 16);
    for (size_t i = 0; i < entries.size(); ++i) {
        if (!entries[i].first.is_string() && equal(entries[i].first, key)) return i;
    }
    return SIZE_MAX;
}

const Value* Dict::find(std::string_view key) const {
    const size_t at = position(key);
    return at == SIZE_MAX ? nullptr : &entries[at].second;
}

const Value* Dict::find(const Value& key) const {
    const size_t at = position(key);
    return at == SIZE_MAX ? nullptr : &entries[at].second;
}

void Dict::set(Value key, Value value) {
    const size_t at = position(key);
    if (at != SIZE_MAX) {
        entries[at].second = std::move(value);
        return;
    }
    heap.take_values(1);
    if (!key.is_string()) ++other_keys_;
    entries.emplace_back(std::move(key), std::move(value));
    if (indexed_) {
        if (entries.back().first.is_string()) index_[entries.back().first.str().text] = entries.size() - 1;
    } else if (entries.size() > small_dict_entries) {
        indexed_ = true;
        for (size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].first.is_string()) index_[entries[i].first.str().text] = i;
        }
    }
}

bool Dict::erase(const Value& key) {
    const size_t at = position(key);
    if (at == SIZE_MAX) return false;
    heap.step(entries.size() / 16);
    if (!entries[at].first.is_string()) --other_keys_;
    index_.clear();
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
    heap.give_values(1);
    if (indexed_) {
        for (size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].first.is_string()) index_[entries[i].first.str().text] = i;
        }
    }
    return true;
}

Value make_string(Heap& heap, std::string text, UserRanges user) {
    CHECK_LT(text.size(), size_t{UINT32_MAX});
    return Value::object(Kind::string, new Str(heap, std::move(text), std::move(user)));
}
Value make_list(Heap& heap, std::vector<Value> items, Flavor flavor) {
    return Value::object(Kind::list, new List(heap, std::move(items), flavor));
}
Value make_iterator(Heap& heap, std::vector<Value> items, std::string_view python_name) {
    return Value::object(Kind::iterator, new Iterator(heap, std::move(items), python_name));
}
Value make_dict(Heap& heap) { return Value::object(Kind::dict, new Dict(heap)); }
Value make_undefined(Heap& heap, std::string message) { return Value::object(Kind::undefined, new Undefined(heap, std::move(message))); }

std::string type_name(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined: return "Undefined";
        case Kind::none: return "NoneType";
        case Kind::boolean: return "bool";
        case Kind::integer: return "int";
        case Kind::real: return "float";
        case Kind::string: return value.str().markup ? "Markup" : "str";
        case Kind::list:
            switch (value.list().flavor) {
                case Flavor::list: return "list";
                case Flavor::tuple: return "tuple";
                case Flavor::group: return "_GroupTuple";
                case Flavor::dict_keys: return "dict_keys";
                case Flavor::dict_values: return "dict_values";
                case Flavor::dict_items: return "dict_items";
            }
            break;
        case Kind::dict: return "dict";
        case Kind::iterator: return std::string(value.iterator().name);
        case Kind::range: return "range";
        case Kind::space: return "Namespace";
        case Kind::function: return value.function().type_name();
    }
    return "object";
}

bool truthy(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
        case Kind::none: return false;
        case Kind::boolean:
        case Kind::integer: return value.as_int() != 0;
        case Kind::real: return value.as_real() != 0;
        case Kind::string: return !value.str().text.empty();
        case Kind::list: return !value.list().items.empty();
        case Kind::dict: return !value.dict().entries.empty();
        case Kind::range: return value.range().length > 0;
        case Kind::iterator:
        case Kind::space: return true;
        case Kind::function: return value.function().truthy();
    }
    return true;
}

bool is_hashable(const Value& value) {
    if (value.is(Kind::dict)) return false;
    if (!value.is(Kind::list)) return true;
    if (!value.list().is_tuple()) return value.list().flavor == Flavor::dict_values;  // hashed by identity
    for (const Value& item : value.list().items) {
        if (item.is(Kind::dict) || (item.is(Kind::list) && !item.list().is_tuple())) return false;
    }
    return true;
}

namespace {

bool same_number(const Value& a, const Value& b) {
    if (a.is_int_like() && b.is_int_like()) return a.as_int() == b.as_int();
    // 64 bits of mantissa hold every int64 and every double exactly.
    const auto exact = [](const Value& v) {
        return v.is(Kind::real) ? static_cast<long double>(v.as_real()) : static_cast<long double>(v.as_int());
    };
    return exact(a) == exact(b);
}

bool equal_at(const Value& a, const Value& b, uint32_t depth);

// keys() and items() are equal as sets are; values() only to itself. No view is equal to a list.
bool equal_views(const List& x, const List& y, uint32_t depth) {
    if (x.flavor != y.flavor || x.flavor == Flavor::dict_values || x.items.size() != y.items.size()) return false;
    if (depth >= limits::template_value_depth) fail("values are nested too deep to compare");
    const bool pairs = x.flavor == Flavor::dict_items;
    const Value map = make_dict(x.heap);
    for (const Value& item : y.items) {
        if (pairs)
            map.dict().set(item.list().items[0], item.list().items[1]);
        else
            map.dict().set(item, Value());
    }
    for (const Value& item : x.items) {
        x.heap.step();
        const Value* other = map.dict().find(pairs ? item.list().items[0] : item);
        if (!other || (pairs && !equal_at(item.list().items[1], *other, depth + 1))) return false;
    }
    return true;
}

bool equal_at(const Value& a, const Value& b, uint32_t depth) {
    if (a.is_number() && b.is_number()) return same_number(a, b);
    if (a.kind() != b.kind()) return false;
    switch (a.kind()) {
        case Kind::undefined:
        case Kind::none: return true;
        case Kind::string: a.as_object()->heap.work(a.str().text.size()); return a.str().text == b.str().text;
        case Kind::list: {
            const List &x = a.list(), &y = b.list();
            if (&x == &y) return true;
            if (x.is_view() || y.is_view()) return equal_views(x, y, depth);
            if (x.is_tuple() != y.is_tuple() || x.items.size() != y.items.size()) return false;
            if (depth >= limits::template_value_depth) fail("values are nested too deep to compare");
            for (size_t i = 0; i < x.items.size(); ++i) {
                x.heap.step();
                if (!equal_at(x.items[i], y.items[i], depth + 1)) return false;
            }
            return true;
        }
        case Kind::dict: {
            const Dict &x = a.dict(), &y = b.dict();
            if (&x == &y) return true;
            if (x.entries.size() != y.entries.size()) return false;
            if (depth >= limits::template_value_depth) fail("values are nested too deep to compare");
            for (const auto& [key, value] : x.entries) {
                x.heap.step();
                const Value* other = y.find(key);
                if (!other || !equal_at(value, *other, depth + 1)) return false;
            }
            return true;
        }
        case Kind::range: {
            const Range &x = a.range(), &y = b.range();
            return x.length == y.length && (x.length == 0 || (x.start == y.start && (x.length == 1 || x.step == y.step)));
        }
        default: return a.as_object() == b.as_object();
    }
}

int compare_at(const Value& a, const Value& b, const char* op, uint32_t depth) {
    if (a.is_number() && b.is_number()) {
        if (a.is_int_like() && b.is_int_like()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
        const auto exact = [](const Value& v) {
            return v.is(Kind::real) ? static_cast<long double>(v.as_real()) : static_cast<long double>(v.as_int());
        };
        const long double x = exact(a), y = exact(b);
        if (std::isnan(x) || std::isnan(y)) return 2;  // no order: every comparison is false
        return x < y ? -1 : x > y;
    }
    if (a.is_string() && b.is_string()) {  // the order of UTF-8 bytes is that of code points
        a.as_object()->heap.work(a.str().text.size());
        const int order = a.str().text.compare(b.str().text);
        return order < 0 ? -1 : order > 0;
    }
    if (a.is(Kind::list) && b.is(Kind::list) && a.list().is_tuple() == b.list().is_tuple() && !a.list().is_view() && !b.list().is_view()) {
        const auto &x = a.list().items, &y = b.list().items;
        if (depth >= limits::template_value_depth) fail("values are nested too deep to compare");
        for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
            a.as_object()->heap.step();
            if (!equal_at(x[i], y[i], depth + 1)) return compare_at(x[i], y[i], op, depth + 1);
        }
        return x.size() < y.size() ? -1 : x.size() > y.size();
    }
    if (a.is_undefined()) fail(a.undefined().message);
    if (b.is_undefined()) fail(b.undefined().message);
    fail(cat("'", op, "' not supported between instances of '", type_name(a), "' and '", type_name(b), "'"));
}

}  // namespace

bool equal(const Value& a, const Value& b) { return equal_at(a, b, 0); }
int compare(const Value& a, const Value& b, const char* op) { return compare_at(a, b, op, 0); }

bool is_iterable(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined:
        case Kind::string:
        case Kind::list:
        case Kind::dict:
        case Kind::iterator:
        case Kind::range: return true;
        case Kind::function: return value.function().is_iterable();
        default: return false;
    }
}

std::vector<Value> elements(Heap& heap, const Value& value) {
    std::vector<Value> all;
    Cursor cursor(heap, value);
    Value item;
    while (cursor.next(item)) {
        if (all.size() >= limits::template_values) fail_limit("too many values at once");
        all.push_back(std::move(item));
    }
    return all;
}

int64_t length_of(const Value& value) {
    switch (value.kind()) {
        case Kind::undefined: return 0;
        case Kind::string: return static_cast<int64_t>(value.str().length());
        case Kind::list: return static_cast<int64_t>(value.list().items.size());
        case Kind::dict: return static_cast<int64_t>(value.dict().entries.size());
        case Kind::range: return value.range().length;
        case Kind::function:
            if (const auto length = value.function().length()) return *length;
            break;
        default: break;
    }
    fail(cat("object of type '", type_name(value), "' has no len()"));
}

}  // namespace text::jinja
