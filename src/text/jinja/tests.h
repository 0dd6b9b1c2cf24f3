// value is test(args): one table of all tests.
#pragma once

#include <string_view>

#include "text/jinja/interpreter.h"

namespace text::jinja {

struct TestEntry {
    std::string_view name;
    bool (*apply)(Interpreter& in, const Value& value, Args& args);
};

const TestEntry* find_test(std::string_view name);  // null when there is none

}  // namespace text::jinja
