#include "base/log.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "base/limits.h"
#include "base/message.h"
#include "base/utf8.h"

namespace base {

static_assert(limits::log_line_bytes <= PIPE_BUF);

void Logger::write(LogLevel level, std::string_view line) {
    if (!enabled(level)) return;
    std::string out;
    if (with_prefix_) out = cat('<', static_cast<int>(level), '>');
    out += printable(line, limits::log_line_bytes);
    if (out.size() >= limits::log_line_bytes) {
        out.resize(limits::log_line_bytes - 4);
        out.resize(out.size() - utf8::incomplete_tail(out));
        out += "...";
    }
    out += '\n';
    // A pipe that poll calls writable takes PIPE_BUF (4096) bytes at once, so a line never waits for a reader.
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT)) {
        ssize_t n;
        do n = ::write(fd_, out.data(), out.size());
        while (n < 0 && errno == EINTR);
        if (n == static_cast<ssize_t>(out.size())) return;
    }
    dropped_.fetch_add(1, std::memory_order_relaxed);
}

Logger& logger() {
    static Logger instance(STDERR_FILENO, is_journal_stream(STDERR_FILENO, std::getenv("JOURNAL_STREAM")));
    return instance;
}

bool is_journal_stream(int fd, const char* journal_stream) {
    struct stat status {};
    if (!journal_stream || ::fstat(fd, &status) != 0) return false;
    return journal_stream == cat(static_cast<uint64_t>(status.st_dev), ':', static_cast<uint64_t>(status.st_ino));
}

}  // namespace base
