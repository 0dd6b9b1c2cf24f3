// How the interpreter gives up: thrown anywhere inside text/jinja, caught in chat_template.cpp, never seen outside.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace text::jinja {

inline constexpr uint32_t no_position = UINT32_MAX;

struct Failure {
    base::ErrorCode code = base::ErrorCode::invalid_argument;
    std::string message;
    uint32_t position = no_position;  // byte offset in the (newline-normalized) source
    bool raised_by_template = false;  // raise_exception: the message is the template's own
};

[[noreturn]] inline void fail(std::string message, uint32_t position = no_position) {
    throw Failure{base::ErrorCode::invalid_argument, std::move(message), position, false};
}

[[noreturn]] inline void fail_limit(std::string message) {
    throw Failure{base::ErrorCode::too_large, std::move(message), no_position, false};
}

}  // namespace text::jinja
