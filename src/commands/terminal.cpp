#include "commands/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace commands {
namespace {

constexpr int64_t patience_ns = 333'000'000;  // shorter work needs no bar
constexpr int64_t redraw_ns = 50'000'000;
constexpr uint64_t bar_cells = 30;

}  // namespace

bool is_terminal(int fd) { return isatty(fd) == 1; }

std::string dim(int fd, std::string_view text) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    const bool colours = is_terminal(fd) && !(no_color && *no_color) && term && std::string_view(term) != "dumb";
    return colours ? "\x1b[2m" + std::string(text) + "\x1b[0m" : std::string(text);
}

ProgressBar::ProgressBar(std::string label, const base::Clock& clock)
    : label_(std::move(label)), clock_(clock), start_ns_(clock.now_ns()), terminal_(is_terminal(STDERR_FILENO)) {}

void ProgressBar::update(uint64_t done, uint64_t total) {
    if (!terminal_ || total == 0) return;
    const int64_t now = clock_.now_ns();
    if (now - start_ns_ < patience_ns || now - drawn_ns_ < redraw_ns) return;
    drawn_ns_ = now;
    drawn_ = true;
    const uint64_t filled = std::min(done, total) * bar_cells / total;
    std::string bar(filled, '#');
    bar.resize(bar_cells, '.');
    std::fprintf(stderr, "\r%s [%s] %3u %%", label_.c_str(), bar.c_str(), static_cast<unsigned>(std::min(done, total) * 100 / total));
    std::fflush(stderr);
}

void ProgressBar::finish() {
    if (!drawn_) return;
    drawn_ = false;
    std::fprintf(stderr, "\r%*s\r", static_cast<int>(label_.size() + bar_cells + 10), "");
    std::fflush(stderr);
}

}  // namespace commands
