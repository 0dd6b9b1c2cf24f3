// Every option, command and exit code of the program as data. options.cpp reads a command line by it, options_help.cpp
// prints it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "options.h"

namespace options {

// Puts a value where it belongs; an error's message is what is allowed ("a number from 1 to 64").
using Set = base::Result<void> (*)(Parsed&, std::string_view);

struct Option {
    std::string_view flag;      // without the dashes; the environment name follows from it
    char letter;                // 0: none
    std::string_view value;     // placeholder; empty: a switch
    std::string_view fallback;  // shown as the default
    unsigned commands;
    Set set;
    std::string_view help;
};

struct CommandRow {
    Command command;
    std::string_view name;
    unsigned bit;
    std::string_view operands;
    std::string_view help;
};

struct ExitCode {
    int code;
    std::string_view meaning;
};

std::span<const Option> option_table();
std::span<const CommandRow> command_table();
std::span<const ExitCode> exit_codes();

// "HEARTH_KV_BUDGET" of "kv-budget"
std::string environment_name(const Option& option);

}  // namespace options
