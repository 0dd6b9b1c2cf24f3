// Readers of single JSON fields with exact ranges: each error names the field, what was allowed and what was given.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace server {

// A value as a message shows it: `7`, `"10"`, `an object`. Long strings are cut.
std::string shown(const json::Value& value);

// "FIELD must be WHAT, got SHOWN": the one form of a refused value.
base::Error must_be(std::string_view field, std::string_view what, const json::Value& got);

base::Result<bool> read_bool(std::string_view field, const json::Value& value);
// An integer in [low, high]; 3.0 counts as 3 (some clients have only doubles), "3" does not.
base::Result<int64_t> read_int(std::string_view field, const json::Value& value, int64_t low, int64_t high);
// A number in [low, high].
base::Result<double> read_number(std::string_view field, const json::Value& value, double low, double high);
base::Result<std::string> read_string(std::string_view field, const json::Value& value);

// "messages[3].role" from ("messages", 3, "role"); the last part may be empty.
std::string element_field(std::string_view array, size_t index, std::string_view member = {});

}  // namespace server
