// Strings as Python sees them: characters by number, slices, white space, case, numbers as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/builder.h"
#include "text/jinja/value.h"

namespace text::jinja {

// Where character `index` begins; index = length gives the end. `from_byte` is where character `from_index` begins.
size_t byte_of(const Str& str, size_t index, size_t from_byte = 0, size_t from_index = 0);
// The number of characters before byte `at`.
size_t index_of(const Str& str, size_t at);

// Python's slice.indices(): first and last bound, and how many lie between.
struct Indices {
    int64_t start, stop, count;
};
Indices slice_indices(int64_t length, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step);

// str.strip: [begin, end) of what remains. `chars`: which characters go; null: white space.
struct Span {
    size_t begin, end;
};
Span strip(std::string_view text, const std::string_view* chars, bool left, bool right);

// The first place of `needle` at or after `from`, npos when there is none. Linear for any texts (std::string::find is
// quadratic for two long runs of one letter).
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
// The last place of `needle` in text[0, end). Linear too.
size_t rfind_text(std::string_view text, std::string_view needle);

// Python's repr of a float: the shortest text that reads back, 1e16 and up and below 1e-4 with an exponent.
std::string float_repr(double value);
// Python's int(text, base) and float(text): nothing when they raise ValueError; int fails beyond 64 bits.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

// Python's repr of a string, without regard to who wrote it.
std::string string_repr(std::string_view text);

enum class Case : uint8_t { lower, upper, title, capitalize, swap };
// Python's str.lower() ... of the bytes [begin, end), writers kept.
void add_cased(Builder& out, const Str& str, size_t begin, size_t end, Case what);
inline void add_cased(Builder& out, const Str& str, Case what) { add_cased(out, str, 0, str.text.size(), what); }

}  // namespace text::jinja
