// A line of input from a person: editing keys and history on a terminal through libedit (BSD, has a static archive in
// Debian), plain lines elsewhere. One object a process; main thread.
#pragma once

#include <memory>
#include <string>

namespace commands {

enum class LineResult { line, interrupted, end };

class LineEditor {
  public:
    LineEditor();
    ~LineEditor();
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    // Reads one line without its newline; `interrupted` after Ctrl-C (the line is dropped), `end` after Ctrl-D or
    // the end of input. The line goes into the history.
    LineResult read(const std::string& prompt, std::string& line);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace commands
