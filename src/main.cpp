// Picks a command. Everything else is in commands/.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>

#include "commands/version.h"
#include "options.h"

int main(int argc, char** argv) {
    std::setlocale(LC_CTYPE, "C.UTF-8");
    const std::span<const char* const> arguments(argv + 1, argc > 0 ? static_cast<size_t>(argc - 1) : 0);
    auto parsed = options::parse(arguments, [](const char* name) -> const char* { return std::getenv(name); });
    if (!parsed) {
        std::fprintf(stderr, "hearth: %s\n", parsed.error().message.c_str());
        return 2;
    }
    const options::Parsed& options = parsed.value();
    switch (options.command) {
        case options::Command::serve: return commands::serve_command(options.serve);
        case options::Command::run: return commands::run_command(options.serve, options.run);
        case options::Command::inspect: return commands::inspect_command(options.inspect, std::cout, std::cerr);
        case options::Command::version: return commands::version_command(options.version_json, std::cout);
        case options::Command::help: std::cout << options::help(options.help_of, options.help_format); return 0;
        case options::Command::none: std::cerr << options::help(options::Command::none, options::HelpFormat::text); return 2;
    }
    return 2;
}
