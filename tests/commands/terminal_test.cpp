// The progress bar on a pseudo-terminal and on a pipe.
#include "commands/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <string>

#include "support/fake_clock.h"

namespace commands {
namespace {

constexpr int64_t ms = 1'000'000;

// stderr is a terminal, or a pipe, while this lives.
class Stderr {
  public:
    explicit Stderr(bool terminal) : saved_(dup(STDERR_FILENO)) {
        int ends[2] = {-1, -1};
        if (terminal)
            EXPECT_EQ(openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
        else
            EXPECT_EQ(pipe(ends), 0);
        read_ = ends[0];
        fcntl(read_, F_SETFL, O_NONBLOCK);
        dup2(ends[1], STDERR_FILENO);
        close(ends[1]);
    }
    ~Stderr() {
        dup2(saved_, STDERR_FILENO);
        close(saved_);
        close(read_);
    }
    std::string take() {
        char bytes[4096];
        const ssize_t n = read(read_, bytes, sizeof bytes);
        return std::string(bytes, n > 0 ? static_cast<size_t>(n) : 0);
    }

  private:
    int saved_, read_ = -1;
};

TEST(ProgressBar, IsDrawnOnATerminalWhenWorkTakesLong) {
    Stderr output(true);
    support::FakeClock clock;
    ProgressBar bar("loading", clock);
    bar.update(10, 100);
    clock.advance_ns(300 * ms);
    bar.update(20, 100);
    EXPECT_EQ(output.take(), "");  // a third of a second needs no bar
    clock.advance_ns(100 * ms);
    bar.update(50, 100);
    EXPECT_EQ(output.take(), "\rloading [###############...............]  50 %");
    clock.advance_ns(10 * ms);
    bar.update(60, 100);
    EXPECT_EQ(output.take(), "");  // not more often than a terminal can show
    clock.advance_ns(100 * ms);
    bar.update(100, 100);
    EXPECT_EQ(output.take(), "\rloading [##############################] 100 %");
    bar.finish();
    const std::string wiped = output.take();
    EXPECT_EQ(wiped.find_first_not_of("\r "), std::string::npos) << wiped;
    EXPECT_GE(wiped.size(), std::string("loading [##############################] 100 %").size());
    EXPECT_EQ(wiped.back(), '\r');
}

TEST(ProgressBar, IsSilentElsewhere) {
    Stderr output(false);
    support::FakeClock clock;
    ProgressBar bar("loading", clock);
    clock.advance_ns(5'000 * ms);
    bar.update(50, 100);
    bar.finish();
    EXPECT_EQ(output.take(), "");
}

}  // namespace
}  // namespace commands
