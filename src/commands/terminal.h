// What a terminal is told: colours only where there is one and NO_COLOR is not set, a progress bar on long work.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace commands {

bool is_terminal(int fd);
// `text` dimmed when `fd` is a terminal and colours are wanted.
std::string dim(int fd, std::string_view text);

// A bar on stderr that appears only on a terminal and only when the work takes longer than a third of a second; erased by
// finish(). One thread.
class ProgressBar {
  public:
    ProgressBar(std::string label, const base::Clock& clock);
    ~ProgressBar() { finish(); }
    void update(uint64_t done, uint64_t total);
    void finish();

  private:
    std::string label_;
    const base::Clock& clock_;
    int64_t start_ns_, drawn_ns_ = 0;
    bool terminal_, drawn_ = false;
};

}  // namespace commands
