#include "commands/sd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace commands {
namespace {

std::string take_environment(const char* name) {
    const char* value = std::getenv(name);
    std::string text = value ? value : "";
    ::unsetenv(name);  // children must not speak for us
    return text;
}

uint64_t number(const std::string& text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

}  // namespace

SdNotify::SdNotify() : socket_path_(take_environment("NOTIFY_SOCKET")) {
    const uint64_t interval = number(take_environment("WATCHDOG_USEC"));
    const std::string pid = take_environment("WATCHDOG_PID");
    if (pid.empty() || number(pid) == static_cast<uint64_t>(::getpid())) watchdog_us_ = interval;
}

bool SdNotify::send(std::string_view state) const {
    sockaddr_un address{};
    if (socket_path_.empty() || socket_path_.size() >= sizeof address.sun_path) return false;
    if (socket_path_[0] != '/' && socket_path_[0] != '@') return false;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
    if (socket_path_[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_path_.size());
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    const ssize_t sent = ::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address), length);
    ::close(fd);
    return sent == static_cast<ssize_t>(state.size());
}

}  // namespace commands
