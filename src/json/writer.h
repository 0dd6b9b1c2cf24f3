// Writes JSON straight into a string: no tree per token. Commas and quotes are the writer's business; the caller
// must pair begin and end (checked). Strings may be any bytes: invalid UTF-8 becomes U+FFFD, so the output is always
// valid JSON. Doubles are the shortest text that reads back equal; NaN and infinities become null.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "json/value.h"

namespace json {

class Writer {
  public:
    // Appends to `out`, which outlives the writer.
    explicit Writer(std::string& out) : out_(out) {}

    Writer& begin_object();
    Writer& end_object();
    Writer& begin_array();
    Writer& end_array();
    Writer& key(std::string_view name);

    Writer& value(std::string_view text);
    Writer& value(const char* text) { return value(std::string_view(text)); }
    Writer& value(const std::string& text) { return value(std::string_view(text)); }
    Writer& value(bool flag);
    Writer& value(std::nullptr_t);
    Writer& value(double number);
    Writer& value(float number);  // the shortest text of the float, not of its double
    Writer& value(int64_t number);
    Writer& value(uint64_t number);
    Writer& value(int number) { return value(int64_t{number}); }
    Writer& value(unsigned number) { return value(uint64_t{number}); }
    Writer& value(const Value& tree);

    template <typename T>
    Writer& member(std::string_view name, const T& v) {
        return key(name).value(v);
    }

    // The caller's own JSON text, taken as one value.
    Writer& raw(std::string_view json);

    // True when every begin has its end and one value was written.
    bool complete() const { return depth_ == 0 && !after_key_ && !first_[0]; }

  private:
    static constexpr uint32_t depth_max = 128;
    void before_value();
    void open(char c);
    void close(char c);
    void append_string(std::string_view text);

    std::string& out_;
    uint32_t depth_ = 0;
    bool after_key_ = false;
    std::array<bool, depth_max> first_{true};  // nothing written yet at this depth
};

// The whole tree as text, without white space.
std::string to_text(const Value& tree);

}  // namespace json
