// What both ways to format share: widths, and numbers as digits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/builder.h"

namespace text::jinja {

inline constexpr int precision_max = 400;  // digits after the point: 1e308 with that many fits in float_digits' buffer

// Digits at text[at...], `at` moves behind them; fails above the largest output.
int64_t parse_number(std::string_view text, size_t& at);
std::string radix(uint64_t value, int base, bool upper);
// The digits of a non-negative float in one of the types e f g (or E F G); `alternate` keeps the point.
std::string float_digits(double value, char type, int64_t precision, bool alternate);
void pad(Builder& out, size_t n, std::string_view fill = " ", bool user = false);

}  // namespace text::jinja
