#include "options.h"

#include <algorithm>
#include <vector>

#include "option_table.h"

namespace options {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

const Option* find_flag(std::string_view name) {
    for (const Option& option : option_table())
        if (option.flag == name) return &option;
    return nullptr;
}

const Option* find_letter(char letter) {
    for (const Option& option : option_table())
        if (option.letter == letter && letter != 0) return &option;
    return nullptr;
}

std::string quoted(std::string_view text) {
    constexpr size_t shown = 60;
    std::string out = "\"";
    for (char c : text.substr(0, shown)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    return out + (text.size() > shown ? "...\"" : "\"");
}

Result<void> apply(const Option& option, std::string_view called, Parsed& parsed, std::string_view value) {
    auto result = option.set(parsed, value);
    if (result) return {};
    return Error{ErrorCode::invalid_argument, std::string(called) + ": " + quoted(value) + " is not allowed; expected " + result.error().message,
                 std::string(option.flag)};
}

}  // namespace

Result<Parsed> parse(std::span<const char* const> arguments, const char* (*environment)(const char*)) {
    Parsed parsed;
    if (arguments.empty()) return parsed;
    const std::string_view verb = arguments[0];
    if (verb == "--help" || verb == "-h") {
        parsed.command = Command::help;
        return parsed;
    }
    if (verb == "--version" || verb == "-V") {
        parsed.command = Command::version;
        return parsed;
    }
    const CommandRow* row = nullptr;
    for (const CommandRow& candidate : command_table())
        if (candidate.name == verb) row = &candidate;
    if (!row) {
        std::string known;
        for (const CommandRow& candidate : command_table()) known += (known.empty() ? "" : ", ") + std::string(candidate.name);
        return Error{ErrorCode::invalid_argument, quoted(verb) + " is not a command; expected one of " + known, {}};
    }
    parsed.command = row->command;

    for (const Option& option : option_table()) {
        if (!(option.commands & row->bit)) continue;
        const std::string name = environment_name(option);
        if (const char* value = environment(name.c_str()); value && *value)
            if (auto result = apply(option, name, parsed, value); !result) return result.take_error();
    }

    std::vector<std::string_view> operands;
    std::vector<const Option*> seen;
    bool flags_end = false;
    for (size_t i = 1; i < arguments.size(); ++i) {
        std::string_view argument = arguments[i];
        if (flags_end || argument.size() < 2 || argument[0] != '-') {
            operands.push_back(argument);
            continue;
        }
        if (argument == "--") {
            flags_end = true;
            continue;
        }
        if (argument == "--help" || argument == "-h") {
            parsed.help_of = parsed.command;
            parsed.command = Command::help;
            return parsed;
        }
        const Option* option = nullptr;
        std::string_view called = argument, value;
        bool has_value = false;
        if (argument[1] == '-') {
            const size_t equals = argument.find('=');
            called = argument.substr(0, equals);
            option = find_flag(called.substr(2));
            if (equals != std::string_view::npos) value = argument.substr(equals + 1), has_value = true;
        } else {
            option = find_letter(argument[1]);
            called = argument.substr(0, 2);
            if (argument.size() > 2) value = argument.substr(2), has_value = true;
        }
        if (!option || !(option->commands & row->bit))
            return Error{ErrorCode::invalid_argument,
                         std::string(called) + " is not an option of hearth " + std::string(row->name) + "; see hearth " + std::string(row->name) + " --help", {}};
        if (option->value.empty()) {
            if (!has_value) value = "1";
        } else if (!has_value) {
            if (i + 1 >= arguments.size())
                return Error{ErrorCode::invalid_argument, std::string(called) + " needs a value (" + std::string(option->value) + ")", {}};
            value = arguments[++i];
        }
        // The first flag of a list stands above the environment's list, further ones add to it.
        for (auto [name, list] : {std::pair{std::string_view("allow-host"), &parsed.serve.hosts}, {"cors-origin", &parsed.serve.cors_origins}})
            if (option->flag == name && std::find(seen.begin(), seen.end(), option) == seen.end()) list->clear();
        seen.push_back(option);
        if (auto result = apply(*option, called, parsed, value); !result) return result.take_error();
    }

    switch (parsed.command) {
        case Command::serve:
        case Command::run:
        case Command::inspect: {
            // The unit file and containers name the model there.
            if (const char* model = environment("HEARTH_MODEL"); operands.empty() && model && *model) operands.push_back(model);
            if (operands.empty())
                return Error{ErrorCode::invalid_argument, "hearth " + std::string(row->name) + " needs a model file: hearth " + std::string(row->name) + " " + std::string(row->operands), {}};
            parsed.serve.model_path = parsed.inspect.path = std::string(operands[0]);
            if (parsed.command == Command::run) {
                if (operands.size() > 1 && environment("HEARTH_PROMPT")) parsed.run.prompt.clear();
                for (size_t i = 1; i < operands.size(); ++i) parsed.run.prompt += (parsed.run.prompt.empty() ? "" : " ") + std::string(operands[i]);
            } else if (operands.size() > 1) {
                return Error{ErrorCode::invalid_argument, quoted(operands[1]) + " is one operand too many", {}};
            }
            break;
        }
        case Command::quantize:
            if (operands.size() != 3)
                return Error{ErrorCode::invalid_argument, "hearth quantize needs three operands: hearth quantize " + std::string(row->operands), {}};
            parsed.quantize.in = std::string(operands[0]);
            parsed.quantize.out = std::string(operands[1]);
            parsed.quantize.type = std::string(operands[2]);
            break;
        case Command::help:
            if (!operands.empty()) {
                for (const CommandRow& candidate : command_table())
                    if (candidate.name == operands[0]) parsed.help_of = candidate.command;
                if (parsed.help_of == Command::none) return Error{ErrorCode::invalid_argument, quoted(operands[0]) + " is not a command", {}};
            }
            break;
        default:
            if (!operands.empty()) return Error{ErrorCode::invalid_argument, quoted(operands[0]) + " is one operand too many", {}};
    }
    return parsed;
}

}  // namespace options
