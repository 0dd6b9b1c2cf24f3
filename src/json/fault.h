// Where a text stops being JSON, and why: a plain scanner without recursion, used to explain a refusal and, in the
// fuzz target, as the second opinion on what simdjson accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace json {

struct Fault {
    size_t offset = 0;   // bytes from the start of the text
    std::string reason;  // "expected ',' or '}', found 'x'"
};

// The first fault of `text` as one RFC 8259 value in UTF-8 with numbers that fit int64, uint64 or a finite double and
// no more than depth_max nested non-empty arrays and objects; nothing when there is none. Pure, linear.
std::optional<Fault> find_fault(std::string_view text, uint32_t depth_max);

}  // namespace json
