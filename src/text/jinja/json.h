// json.dumps as transformers' tojson filter calls it.
#pragma once

#include <optional>
#include <string_view>

#include "text/jinja/interpreter.h"

namespace text::jinja {

struct JsonStyle {
    bool ensure_ascii = false, sort_keys = false;
    std::optional<Value> indent;  // a string; absent: all on one line
    std::string item_separator = ", ", key_separator = ": ";
    bool user_separators = false;  // a user wrote them
};

// Text of a user inside stays a user's; the punctuation is the template's. Fails on what JSON can't say.
void write_json(Interpreter& in, Builder& out, const Value& value, const JsonStyle& style);

}  // namespace text::jinja
