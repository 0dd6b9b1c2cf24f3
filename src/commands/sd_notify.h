// systemd's notification protocol by hand: one datagram to $NOTIFY_SOCKET (libsystemd has no static archive).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace commands {

class SdNotify {
  public:
    // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of the environment, and removes them from it.
    SdNotify();
    // For tests: a path, or "@name" for the abstract namespace; empty: nobody listens.
    explicit SdNotify(std::string socket_path) : socket_path_(std::move(socket_path)) {}

    bool enabled() const { return !socket_path_.empty(); }
    // Lines of NAME=VALUE, as sd_notify(3) has them. Never blocks; false when it could not be sent.
    bool send(std::string_view state) const;
    // How often the watchdog wants to hear WATCHDOG=1, in microseconds; 0: not at all.
    uint64_t watchdog_us() const { return watchdog_us_; }

  private:
    std::string socket_path_;
    uint64_t watchdog_us_ = 0;
};

}  // namespace commands
