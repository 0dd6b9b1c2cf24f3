// The tables as text: --help, the README's tables, the manual page.
#include <algorithm>
#include <cstdio>

#include "base/version.h"
#include "option_table.h"
#include "quant/types.h"

namespace options {
namespace {

const CommandRow* row_of(Command command) {
    for (const CommandRow& row : command_table())
        if (row.command == command) return &row;
    return nullptr;
}

std::string spelled(const Option& option) {
    std::string out = option.letter ? std::string("-") + option.letter + ", " : "    ";
    out += "--" + std::string(option.flag);
    if (!option.value.empty()) out += " " + std::string(option.value);
    return out;
}

std::string text_help(Command command) {
    std::string out;
    if (const CommandRow* row = row_of(command)) {
        out = "usage: hearth " + std::string(row->name) + " " + std::string(row->operands) + " [options]\n\n" + std::string(row->help) + "\n\n";
        for (const Option& option : option_table()) {
            if (!(option.commands & row->bit)) continue;
            std::string left = "  " + spelled(option);
            left.resize(std::max<size_t>(left.size() + 1, 30), ' ');
            out += left + std::string(option.help) + " [" + std::string(option.fallback) + "]\n";
        }
        return out + "\nEach option is also an environment variable: --kv-budget is HEARTH_KV_BUDGET. Flags stand above it.\nHEARTH_MODEL names the model when the command line does not.\n";
    }
    out = "hearth " + std::string(version) + ": serves quantized language models from one program\n\n";
    for (const CommandRow& row : command_table()) {
        std::string left = "  hearth " + std::string(row.name) + " " + std::string(row.operands);
        left.resize(std::max<size_t>(left.size() + 1, 40), ' ');
        out += left + std::string(row.help) + "\n";
    }
    out += "\n`hearth COMMAND --help` lists a command's options.\n\nExit codes:\n";
    for (const ExitCode& code : exit_codes()) out += "  " + std::to_string(code.code) + (code.code < 10 ? "    " : code.code < 100 ? "   " : "  ") + std::string(code.meaning) + "\n";
    return out;
}

std::string commands_of(const Option& option) {
    std::string out;
    for (const CommandRow& row : command_table())
        if (option.commands & row.bit) out += (out.empty() ? "" : ", ") + std::string(row.name);
    return out;
}

std::string markdown_help() {
    std::string out = "| option | environment | default | commands | what it does |\n|---|---|---|---|---|\n";
    for (const Option& option : option_table()) {
        std::string flag = option.letter ? std::string("`-") + option.letter + "` " : "";
        flag += "`--" + std::string(option.flag) + (option.value.empty() ? "" : " " + std::string(option.value)) + "`";
        out += "| " + flag + " | `" + environment_name(option) + "` | " + std::string(option.fallback) + " | " + commands_of(option) + " | " +
               std::string(option.help) + " |\n";
    }
    out += "\n| exit code | meaning |\n|---|---|\n";
    for (const ExitCode& code : exit_codes()) out += "| " + std::to_string(code.code) + " | " + std::string(code.meaning) + " |\n";
    return out;
}

std::string roff(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '-' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string man_help() {
    std::string out = ".TH HEARTH 1 \"\" \"hearth " + std::string(version) + "\" \"User Commands\"\n.SH NAME\nhearth \\- serve quantized language models\n.SH SYNOPSIS\n";
    for (const CommandRow& row : command_table())
        out += ".B hearth " + std::string(row.name) + "\n" + roff(row.operands) + (row.command == Command::version ? "" : " [options]") + "\n.br\n";
    out += ".SH COMMANDS\n";
    for (const CommandRow& row : command_table()) out += ".TP\n.B " + std::string(row.name) + "\n" + roff(row.help) + "\n";
    out += ".SH OPTIONS\n";
    for (const Option& option : option_table()) {
        out += ".TP\n.B ";
        if (option.letter) out += std::string("\\-") + option.letter + ", ";
        out += roff("--" + std::string(option.flag)) + (option.value.empty() ? "" : " \\fI" + std::string(option.value) + "\\fR") + "\n" + roff(option.help) +
               ". Default: " + roff(option.fallback) + ". Commands: " + commands_of(option) + ". Environment: " + environment_name(option) + ".\n";
    }
    out += ".SH EXIT STATUS\n";
    for (const ExitCode& code : exit_codes()) out += ".TP\n.B " + std::to_string(code.code) + "\n" + roff(code.meaning) + "\n";
    return out + ".SH ENVIRONMENT\nHEARTH_MODEL names the model when the command line does not. NO_COLOR turns colours off.\n";
}

std::string formats_help() {
    std::string out = "| type | bits per weight | weights of a block |\n|---|---|---|\n";
    for (const quant::TypeInfo& row : quant::type_infos) {
        char bits[16];
        std::snprintf(bits, sizeof bits, "%.4g", row.block_bytes * 8.0 / row.block_elements);
        out += "| " + std::string(row.name) + " | " + bits + " | " + std::to_string(row.block_elements) + " |\n";
    }
    return out;
}

}  // namespace

std::string help(Command command, HelpFormat format) {
    switch (format) {
        case HelpFormat::markdown: return markdown_help();
        case HelpFormat::man: return man_help();
        case HelpFormat::formats: return formats_help();
        case HelpFormat::text: break;
    }
    return text_help(command);
}

}  // namespace options
