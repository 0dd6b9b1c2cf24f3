// The command line: one table of options (option_table.cpp) gives the flags, the HEARTH_* environment, --help, the
// README's table and the man page.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/inspect.h"
#include "commands/quantize.h"
#include "commands/run.h"
#include "commands/serve.h"

namespace options {

enum class Command { none, serve, run, inspect, quantize, version, help };
enum class HelpFormat { text, markdown, man, formats };

struct Parsed {
    Command command = Command::none;
    Command help_of = Command::none;   // with Command::help: which command; none is all of them
    HelpFormat help_format = HelpFormat::text;
    bool version_json = false;
    commands::ServeOptions serve;      // what loads a model is here for run too
    commands::RunOptions run;
    commands::InspectOptions inspect;
    commands::QuantizeOptions quantize;
};

// `environment` is asked for each HEARTH_* name; null when unset. Flags stand above it. An error names the flag
// or the variable, the value and what is allowed.
base::Result<Parsed> parse(std::span<const char* const> arguments, const char* (*environment)(const char* name));

std::string help(Command command, HelpFormat format);

}  // namespace options
