// Plain lines to stderr. One write a line, so lines of several threads do not mix; control characters and ill-formed
// UTF-8 are escaped, so a client's text cannot forge a line or move a cursor. Never pass prompts, answers or keys.
// A line is dropped, and counted, rather than waited for: a full disk or a reader that stopped never stops a thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace base {

// The numbers are those of syslog, which the journal reads as a "<N>" prefix.
enum class LogLevel : uint8_t { error = 3, warning = 4, info = 6, debug = 7 };

class Logger {
  public:
    // Writes to `fd`, which stays the caller's. with_prefix: "<6>" before each line.
    Logger(int fd, bool with_prefix) : fd_(fd), with_prefix_(with_prefix) {}

    // Lines above this level are left out. Any thread.
    void set_level(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
    bool enabled(LogLevel level) const { return level <= level_.load(std::memory_order_relaxed); }
    // One line; without a newline at its end. More than limits::log_line_bytes is cut. Any thread.
    void write(LogLevel level, std::string_view line);
    uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  private:
    const int fd_;
    const bool with_prefix_;
    std::atomic<LogLevel> level_{LogLevel::info};
    std::atomic<uint64_t> dropped_{0};
};

// stderr, with prefixes when it goes to the journal. Lives for ever.
Logger& logger();

inline void log_error(std::string_view line) { logger().write(LogLevel::error, line); }
inline void log_warning(std::string_view line) { logger().write(LogLevel::warning, line); }
inline void log_info(std::string_view line) { logger().write(LogLevel::info, line); }
inline void log_debug(std::string_view line) { logger().write(LogLevel::debug, line); }

// Whether `fd` is the stream that systemd's JOURNAL_STREAM ("device:inode" in decimal) names; null when it is not set.
bool is_journal_stream(int fd, const char* journal_stream);

}  // namespace base
