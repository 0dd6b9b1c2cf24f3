// A JSON value as a small tree of our own: order of members kept, numbers kept as they were written (integer or not).
// Nothing here knows simdjson. Values are plain data; const access from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace json {

struct Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
// Keys are unique: of two equal keys the first gives the place and the last the value, as in Python's dict.
using Object = std::vector<Member>;

struct Value {
    // uint64_t only for integers above INT64_MAX. Strings are valid UTF-8 (and may hold NUL).
    std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> data = nullptr;

    bool is_null() const { return std::holds_alternative<std::nullptr_t>(data); }
    const bool* as_bool() const { return std::get_if<bool>(&data); }
    const int64_t* as_int() const { return std::get_if<int64_t>(&data); }
    const uint64_t* as_uint() const { return std::get_if<uint64_t>(&data); }
    const double* as_double() const { return std::get_if<double>(&data); }
    const std::string* as_string() const { return std::get_if<std::string>(&data); }
    const Array* as_array() const { return std::get_if<Array>(&data); }
    const Object* as_object() const { return std::get_if<Object>(&data); }
    // Any of the three number forms, widened (integers above 2^53 are rounded). false: not a number.
    bool number(double& out) const;
    // "null", "a boolean", "an integer", "a number", "a string", "an array", "an object": for messages.
    std::string_view kind_name() const;
    // A member of an object; null when absent or when this is no object. Linear in the members.
    const Value* find(std::string_view key) const;
    bool operator==(const Value& other) const = default;
};

}  // namespace json
