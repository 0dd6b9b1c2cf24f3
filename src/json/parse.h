// The only door to simdjson: text in, a tree of our own out. Strict RFC 8259 (a BOM is skipped); pure and thread safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "json/value.h"

namespace json {

// Refuses, each with the byte offset and what was found: text that is no JSON or not UTF-8, bytes after the value,
// lone surrogates (\ud800), numbers outside int64, uint64 and the finite doubles, nesting over limits::json_depth,
// more than limits::json_values_count values. invalid_argument; never anything else.
base::Result<Value> parse(std::string_view text);

}  // namespace json
