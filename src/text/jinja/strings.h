// Whole-string operations that both filters and str methods use.
#pragma once

#include <vector>

#include "text/jinja/interpreter.h"
#include "text/jinja/text.h"

namespace text::jinja {

// The text with & < > " ' as HTML entities; Markup as it is unless `force`.
void add_escaped(Interpreter& in, Builder& out, const Str& str, bool force = false);

// These give Markup for Markup.
Value strip_string(Interpreter& in, const Str& str, const Value* chars, bool left, bool right);
// str.replace; count < 0: all. Gives no Markup.
Value replace_string(Interpreter& in, const Str& str, const Str& from, const Str& to, int64_t count);
// str.splitlines as byte ranges without the line ends; `final_newline`: as if the text ended with one more newline.
std::vector<Span> split_lines(std::string_view text, bool final_newline = false, bool keep_ends = false);
enum class Padding : uint8_t { left, right, center };  // where the text stands
Value pad_string(Interpreter& in, const Str& str, int64_t width, const Value* fill, Padding padding);

}  // namespace text::jinja
