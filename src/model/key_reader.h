// Typed metadata of an architecture with bounds: what config.cpp and the families read a file by.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/message.h"
#include "base/result.h"
#include "gguf/file.h"

namespace model {

inline std::string short_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

// Reads keys of the architecture; the first error sticks, so that the caller checks once.
class KeyReader {
  public:
    KeyReader(const gguf::File& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

    const gguf::File& file() const { return file_; }
    bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
    // A family that knows what a key means says so by reading it, or here when it reads it from the file itself.
    void mark_read(std::string_view name) { read_.emplace(name); }
    bool was_read(std::string_view name) const { return read_.contains(name); }
    std::string key(std::string_view name) const { return prefix_ + "." + std::string(name); }
    const std::optional<base::Error>& error() const { return error_; }

    // An integer in [low, high]; `missing` when the key is absent, an error without one.
    uint32_t number(std::string_view name, uint64_t low, uint64_t high, std::optional<uint64_t> missing = {}) {
        mark_read(name);
        if (missing && !has(name)) return static_cast<uint32_t>(*missing);
        base::Result<uint64_t> value = file_.get_uint(key(name));
        if (!value) return fail(value.take_error());
        if (value.value() < low || value.value() > high) return fail(bad(name, base::cat("is ", value.value(), "; allowed: ", low, " to ", high)));
        return static_cast<uint32_t>(value.value());
    }

    // A finite number in [low, high].
    double real(std::string_view name, double low, double high, std::optional<double> missing = {}) {
        mark_read(name);
        if (missing && !has(name)) return *missing;
        base::Result<double> value = file_.get_float(key(name));
        if (!value) return fail(value.take_error());
        if (!(value.value() >= low && value.value() <= high))  // false for NaN
            return fail(bad(name, base::cat("is ", short_text(value.value()), "; allowed: ", short_text(low), " to ", short_text(high))));
        return value.value();
    }

    uint32_t fail(base::Error error) {
        if (!error_) error_ = std::move(error);
        return 1;  // harmless wherever it is used before the caller looks
    }
    base::Error bad(std::string_view name, std::string_view problem) const {
        const gguf::Value* value = file_.find(key(name));
        return {base::ErrorCode::bad_file, base::cat("metadata key '", key(name), "'", value ? base::cat(" at byte ", value->offset) : std::string(), " ", problem), ""};
    }
    base::Error unsupported(std::string_view name, std::string_view problem) const {
        base::Error error = bad(name, problem);
        error.code = base::ErrorCode::unsupported;
        return error;
    }

  private:
    const gguf::File& file_;
    const std::string prefix_;
    std::optional<base::Error> error_;
    std::set<std::string, std::less<>> read_;
};

}  // namespace model
