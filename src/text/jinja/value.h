// The interpreter's values: Python's as far as templates see them. Small scalars inline, the rest counted objects.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/heap.h"

namespace text::jinja {

enum class Kind : uint8_t {
    undefined,  // Jinja's Undefined; object: Undefined
    none,
    boolean,
    integer,
    real,
    string,    // Str
    list,      // List: list, tuple and the views of a dict
    dict,      // Dict
    iterator,  // Iterator: what Python would make a generator or iterator of; runs once
    range,     // Range
    space,     // Namespace
    function,  // Function: macros, bound methods, globals, the loop object
};

struct Str;
struct List;
struct Dict;
struct Iterator;
struct Range;
struct Namespace;
struct Function;
struct Undefined;

class Value {
  public:
    Value() : kind_(Kind::none), bits_{.integer = 0} {}
    Value(const Value& other) : kind_(other.kind_), bits_(other.bits_) { retain(); }
    Value(Value&& other) noexcept : kind_(other.kind_), bits_(other.bits_) { other.kind_ = Kind::none; }
    Value& operator=(const Value& other) {
        Value copy(other);
        swap(copy);
        return *this;
    }
    Value& operator=(Value&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Value() { release(); }
    void swap(Value& other) noexcept {
        std::swap(kind_, other.kind_);
        std::swap(bits_, other.bits_);
    }

    static Value boolean(bool b) { return Value(Kind::boolean, Bits{.integer = b}); }
    static Value integer(int64_t i) { return Value(Kind::integer, Bits{.integer = i}); }
    static Value real(double d) { return Value(Kind::real, Bits{.real = d}); }
    static Value object(Kind kind, Object* object) {
        Value value(kind, Bits{.object = object});
        value.retain();
        return value;
    }

    Kind kind() const { return kind_; }
    bool is(Kind kind) const { return kind_ == kind; }
    bool is_undefined() const { return kind_ == Kind::undefined; }
    bool is_none() const { return kind_ == Kind::none; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_int_like() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }  // Python's bool is an int
    bool is_number() const { return is_int_like() || kind_ == Kind::real; }

    bool as_bool() const { return bits_.integer != 0; }
    int64_t as_int() const { return bits_.integer; }  // of boolean too
    double as_real() const { return kind_ == Kind::real ? bits_.real : static_cast<double>(bits_.integer); }
    Object* as_object() const { return bits_.object; }
    Str& str() const;
    List& list() const;
    Dict& dict() const;
    Iterator& iterator() const;
    Range& range() const;
    Namespace& space() const;
    Function& function() const;
    Undefined& undefined() const;

  private:
    union Bits {
        int64_t integer;
        double real;
        Object* object;
    };
    Value(Kind kind, Bits bits) : kind_(kind), bits_(bits) {}
    bool counted() const { return kind_ >= Kind::string || kind_ == Kind::undefined; }
    void retain() {
        if (counted()) ++bits_.object->refs;
    }
    void release() {
        if (counted() && --bits_.object->refs == 0) bits_.object->heap.retire(bits_.object);
    }

    Kind kind_;
    Bits bits_;
};

// Which bytes of a string a user wrote: sorted, disjoint, not touching [begin, end) ranges.
struct UserRange {
    uint32_t begin, end;
};
using UserRanges = std::vector<UserRange>;

struct Str final : Object {
    // Owns `bytes` and counts them.
    Str(Heap& heap, std::string bytes, UserRanges user_ranges);
    // Text of the caller, which outlives the rendering: not copied and not counted.
    struct Borrowed {};
    Str(Heap& heap, Borrowed, std::string_view text, bool from_user);
    ~Str() override;

    bool user_wrote_all() const { return user.size() == 1 && user[0].begin == 0 && user[0].end == text.size(); }
    size_t length() const;  // in code points, as Python's len
    bool is_ascii() const { return length() == text.size(); }

    std::string_view text;  // valid UTF-8
    bool markup = false;    // Jinja's Markup: made by `safe` and `escape`; what is added to it is escaped
    UserRanges user;

  private:
    std::string own_;
    bool counted_ = false;
    mutable size_t length_ = SIZE_MAX;
};

enum class Flavor : uint8_t { list, tuple, group, dict_keys, dict_values, dict_items };

struct List final : Object {
    List(Heap& heap, std::vector<Value> values, Flavor kind);
    ~List() override;
    void clear() override { items.clear(); }
    void push(Value value);
    bool is_view() const { return flavor >= Flavor::dict_keys; }
    bool is_tuple() const { return flavor == Flavor::tuple || flavor == Flavor::group; }

    std::vector<Value> items;
    Flavor flavor;
    size_t counted = 0;
};

struct Dict final : Object {
    explicit Dict(Heap& heap) : Object(heap) {}
    ~Dict() override;
    void clear() override {
        entries.clear();
        index_.clear();
    }
    const Value* find(std::string_view key) const;
    const Value* find(const Value& key) const;  // null also for a key that can't be hashed; check with is_hashable
    void set(Value key, Value value);
    bool erase(const Value& key);

    std::vector<std::pair<Value, Value>> entries;  // in order of insertion

  private:
    size_t position(std::string_view key) const;
    size_t position(const Value& key) const;
    // Places of string keys by text, once there are many. A tree: no input can make it slow, as it could a hash table.
    std::map<std::string_view, size_t> index_;
    bool indexed_ = false;
    size_t other_keys_ = 0;  // keys that are no strings
};

struct Iterator final : Object {
    Iterator(Heap& heap, std::vector<Value> values, std::string_view python_name);
    ~Iterator() override;
    void clear() override { items.clear(); }
    std::vector<Value> items;
    size_t next = 0;
    size_t counted;
    std::string_view name;  // of the Python type
};

struct Range final : Object {
    Range(Heap& heap, int64_t start, int64_t stop, int64_t step, int64_t length)
        : Object(heap), start(start), stop(stop), step(step), length(length) {}
    int64_t at(int64_t i) const { return start + i * step; }
    int64_t start, stop, step, length;
};

struct Namespace final : Object {
    explicit Namespace(Heap& heap) : Object(heap) {}
    void clear() override { attributes = Value(); }
    Value attributes;  // a Dict
};

struct Undefined final : Object {
    Undefined(Heap& heap, std::string what) : Object(heap), message(std::move(what)) {}
    std::string message;  // what using it would say
};

// A counted pointer to an object that is no template value (scopes).
template <typename T>
class Ref {
  public:
    Ref() = default;
    explicit Ref(T* object) : object_(object) { retain(); }
    Ref(const Ref& other) : object_(other.object_) { retain(); }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_ && --object_->refs == 0) object_->heap.retire(object_);
    }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    T* get() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    void retain() {
        if (object_) ++object_->refs;
    }
    T* object_ = nullptr;
};

inline Str& Value::str() const { return static_cast<Str&>(*bits_.object); }
inline List& Value::list() const { return static_cast<List&>(*bits_.object); }
inline Dict& Value::dict() const { return static_cast<Dict&>(*bits_.object); }
inline Iterator& Value::iterator() const { return static_cast<Iterator&>(*bits_.object); }
inline Range& Value::range() const { return static_cast<Range&>(*bits_.object); }
inline Namespace& Value::space() const { return static_cast<Namespace&>(*bits_.object); }
inline Undefined& Value::undefined() const { return static_cast<Undefined&>(*bits_.object); }

Value make_string(Heap& heap, std::string text, UserRanges user = {});
// A new string that is Markup when `like` is.
inline Value marked(Value fresh, const Str& like) {
    fresh.str().markup = like.markup;
    return fresh;
}
Value make_list(Heap& heap, std::vector<Value> items, Flavor flavor = Flavor::list);
Value make_iterator(Heap& heap, std::vector<Value> items, std::string_view python_name = "generator");
Value make_dict(Heap& heap);
Value make_undefined(Heap& heap, std::string message);

// Python's type name, for messages: 'str', 'NoneType', ...
std::string type_name(const Value& value);
bool truthy(const Value& value);
bool is_hashable(const Value& value);
// Python's ==. Fails on values nested too deep.
bool equal(const Value& a, const Value& b);
// Python's <: fails with TypeError's text where Python does. -1, 0, 1.
int compare(const Value& a, const Value& b, const char* op);
// The elements of an iterable, as `for` sees them; an iterator is used up. Fails when `value` is none.
std::vector<Value> elements(Heap& heap, const Value& value);
bool is_iterable(const Value& value);
// Python's len(); fails where it does.
int64_t length_of(const Value& value);

}  // namespace text::jinja
