// The values a chat template works on: what JSON can say, plus the interpreter's own callables inside
// chat_template.cpp. Objects keep insertion order, as Python's dict does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace text {

struct Value;
using ValueArray = std::vector<Value>;
using ValueObject = std::vector<std::pair<std::string, Value>>;

struct Value {
    std::variant<std::nullptr_t, bool, int64_t, double, std::string, ValueArray, ValueObject> data = nullptr;

    Value() = default;
    Value(std::nullptr_t) {}
    Value(bool v) : data(v) {}
    Value(int v) : data(int64_t{v}) {}
    Value(int64_t v) : data(v) {}
    Value(double v) : data(v) {}
    Value(std::string v) : data(std::move(v)) {}
    Value(const char* v) : data(std::string(v)) {}
    Value(ValueArray v) : data(std::move(v)) {}
    Value(ValueObject v) : data(std::move(v)) {}
};

}  // namespace text
