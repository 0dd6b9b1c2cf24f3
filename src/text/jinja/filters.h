// value|filter(args): one table of all filters.
#pragma once

#include <span>
#include <string_view>

#include "text/jinja/interpreter.h"

namespace text::jinja {

struct FilterEntry {
    std::string_view name;
    Value (*apply)(Interpreter& in, const Value& value, Args& args);
};

const FilterEntry* find_filter(std::string_view name);  // null when there is none

// The parts of the table.
std::span<const FilterEntry> text_filters();      // filters_text.cpp
std::span<const FilterEntry> value_filters();     // filters_value.cpp
std::span<const FilterEntry> sequence_filters();  // filters_sequence.cpp
std::span<const FilterEntry> group_filters();     // filters_group.cpp

// Arguments as Python's functions take them.
int64_t int_argument(const Value& value, std::string_view what);
const Str& string_argument(const Value& value, std::string_view what);

// 'a.b.0' as Jinja's attribute arguments are read: items by environment.getitem, numbers for all-digit parts.
class AttributePath {
  public:
    // Null or none: the item itself. `fallback`: what takes the place of an undefined part; null: nothing does.
    AttributePath(Interpreter& in, const Value* attribute, const Value* fallback = nullptr);
    Value get(const Value& item) const;

  private:
    Interpreter& in_;
    std::vector<Value> parts_;
    Value fallback_;
};

// Strings in lower case for case-insensitive order; the rest as it is.
Value ignore_case(Interpreter& in, const Value& value);

}  // namespace text::jinja
