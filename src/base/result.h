// Result<T>: a value or an Error. For input that may be bad; a broken invariant is CHECK (check.h).
// C++20 with GCC 12 has no std::expected; this is the part of it that we use.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace base {

// What kind of answer an error is. server/ maps each to an HTTP status in one table.
enum class ErrorCode {
    invalid_argument,         // the caller's value is wrong: 400
    context_length_exceeded,  // prompt and answer can never fit: 400
    not_found,                // 404
    too_large,                // over a named limit: 413
    queue_full,               // bounded queue is full, try again later: 429
    unavailable,              // loading, draining, stuck: 503
    unsupported,              // understood and not built: 400 (501 where a whole route is meant)
    bad_file,                 // a file breaks its format; the message names field, byte offset and what was allowed
    io,                       // the system refused a read, write, map or open
    internal,                 // ours; never a client's fault
};

struct Error {
    ErrorCode code = ErrorCode::internal;
    std::string message;  // one line, for a person; names the field, the value and what was allowed
    std::string field;    // the parameter at fault ("messages[0].role"), empty when there is none
};

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & { CHECK(ok()); return std::get<0>(state_); }
    const T& value() const& { CHECK(ok()); return std::get<0>(state_); }
    T&& value() && { CHECK(ok()); return std::get<0>(std::move(state_)); }
    const Error& error() const { CHECK(!ok()); return std::get<1>(state_); }
    Error&& take_error() { CHECK(!ok()); return std::get<1>(std::move(state_)); }

  private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Error& error() const { CHECK(!ok()); return *error_; }
    Error&& take_error() { CHECK(!ok()); return std::move(*error_); }

  private:
    std::optional<Error> error_;
};

}  // namespace base
