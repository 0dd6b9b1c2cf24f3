// Small helpers for messages: cat() joins text and numbers, printable() makes foreign text safe to show on one line.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace base {

namespace detail {
inline void cat_one(std::string& out, std::string_view text) { out += text; }
inline void cat_one(std::string& out, char c) { out += c; }
template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
void cat_one(std::string& out, T number) {
    out += std::to_string(number);
}
}  // namespace detail

// cat("n_tensors at byte ", 8, " is ", n)
template <typename... Parts>
std::string cat(const Parts&... parts) {
    std::string out;
    (detail::cat_one(out, parts), ...);
    return out;
}

// Text from a file or a client for a terminal, a log line or a message: at most `bytes_max` bytes of it (then "..."),
// control characters (C0, DEL, C1), line and paragraph separators, bidirectional controls and ill-formed UTF-8 as
// \n \t \r \xNN or \u{NNNN}, a backslash doubled.
std::string printable(std::string_view text, size_t bytes_max = 80);

// The same characters left out, newline and tab kept, and U+FFFD for what is ill-formed: running text for a terminal.
// Characters that are cut between two calls are ill-formed in both.
std::string without_controls(std::string_view text);

}  // namespace base
