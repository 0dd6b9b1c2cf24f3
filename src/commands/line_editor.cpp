#include "commands/line_editor.h"

#include <histedit.h>

#include <cerrno>
#include <cstdio>

#include "base/check.h"

namespace commands {
namespace {

constexpr int history_lines = 500;

// libedit asks for the prompt through a plain function; there is one editor a process.
std::string current_prompt;
char* give_prompt(EditLine*) { return current_prompt.data(); }

}  // namespace

struct LineEditor::State {
    EditLine* edit = nullptr;
    History* history = nullptr;
    HistEvent event{};
};

LineEditor::LineEditor() : state_(std::make_unique<State>()) {
    state_->edit = el_init("hearth", stdin, stdout, stderr);
    CHECK(state_->edit != nullptr);
    state_->history = history_init();
    CHECK(state_->history != nullptr);
    history(state_->history, &state_->event, H_SETSIZE, history_lines);
    history(state_->history, &state_->event, H_SETUNIQUE, 1);
    el_set(state_->edit, EL_PROMPT, give_prompt);
    el_set(state_->edit, EL_EDITOR, "emacs");
    el_set(state_->edit, EL_HIST, history, state_->history);
    // Ctrl-R searches backwards, as in shells.
    el_set(state_->edit, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
    history_end(state_->history);
    el_end(state_->edit);
}

LineResult LineEditor::read(const std::string& prompt, std::string& line) {
    current_prompt = prompt;
    // libedit shows the prompt before it leaves the terminal's line mode: a Ctrl-D pressed in between was taken by the terminal
    // and lost. Leaving line mode first closes that gap.
    el_set(state_->edit, EL_PREP_TERM, 1);
    int bytes = 0;
    errno = 0;
    const char* text = el_gets(state_->edit, &bytes);
    if (!text || bytes <= 0) {
        if (errno == EINTR || bytes < 0) return LineResult::interrupted;
        return LineResult::end;
    }
    line.assign(text, static_cast<size_t>(bytes));
    if (!line.empty() && line.back() == '\n') line.pop_back();
    if (!line.empty()) history(state_->history, &state_->event, H_ENTER, line.c_str());
    return LineResult::line;
}

}  // namespace commands
