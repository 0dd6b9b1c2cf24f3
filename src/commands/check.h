// What is odd in a model file: `hearth inspect --check`. Each check is a row of a table and a pure function that looks at
// one thing; it finds what loading would refuse, and what loading can't see: a template that loses the user's text, an answer
// that would never end, numbers that are no numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "gguf/file.h"
#include "gguf/model_files.h"
#include "model/config.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace commands {

// error: hearth refuses the file, or its answers would be wrong. warning: it can be served, but somebody made a mistake.
// note: worth knowing, and no fault; notes don't count.
enum class Severity : uint8_t { note, warning, error };

struct Finding {
    Severity severity = Severity::error;
    std::string_view check;  // the row's name
    std::string message;     // one line, safe to print
};

// The file as far as it can be read. What is missing there has its own finding; a check that needs it finds nothing.
struct CheckedModel {
    explicit CheckedModel(const gguf::File& gguf_file, const base::Clock& system_clock = base::system_clock());

    const gguf::File& file;
    const base::Clock& clock;
    std::optional<model::Config> config;
    std::optional<base::Error> config_problem, tokenizer_problem, template_problem;
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;  // null: none, or template_problem
    std::function<void(std::span<const std::byte>)> release = [](std::span<const std::byte>) {};  // pages that were read once
};

// Where a check puts what it finds: at most limit_a_check findings, then one line that says how many more there are.
class Findings {
  public:
    void add(Severity severity, std::string message);
    std::vector<Finding> take() { return std::move(list_); }

  private:
    friend std::vector<Finding> check_model(const CheckedModel&);
    void begin(std::string_view check);
    void end();
    std::string_view check_;
    Severity worst_unsaid_ = Severity::note;
    uint64_t of_check_ = 0, unsaid_ = 0;
    std::vector<Finding> list_;
};

inline constexpr uint64_t limit_a_check = 50;

struct Check {
    std::string_view name;
    std::string_view what;  // it looks for
    void (*run)(const CheckedModel& model, Findings& findings);
};

// In the order in which they are run.
std::span<const Check> check_table();
std::vector<Finding> check_model(const CheckedModel& model);

// --- the checks, by file ---
// check_metadata.cpp
void check_configuration(const CheckedModel& model, Findings& findings);
void check_ranges(const CheckedModel& model, Findings& findings);
void check_file_type(const CheckedModel& model, Findings& findings);
// check_vocabulary.cpp
void check_vocabulary(const CheckedModel& model, Findings& findings);
void check_special_tokens(const CheckedModel& model, Findings& findings);
void check_pre_tokenizer(const CheckedModel& model, Findings& findings);
// check_template.cpp
void check_chat_template(const CheckedModel& model, Findings& findings);
void check_end_of_turn(const CheckedModel& model, Findings& findings);
// check_weights.cpp
void check_shapes(const CheckedModel& model, Findings& findings);
void check_numbers(const CheckedModel& model, Findings& findings);

// All of them, one line each and a sum, or as one JSON object. 0: no error and no warning; 1: some; 2: the file changed meanwhile.
int print_checks(const gguf::ModelFiles& files, bool json, std::ostream& out, std::ostream& err);

}  // namespace commands
