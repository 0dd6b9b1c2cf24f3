// Picks a command. Everything else is in commands/.
#include <fcntl.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <span>
#include <string>

#include "commands/version.h"
#include "options.h"

namespace {

// A program started without one of them (a bare supervisor) would get its first socket or file there, and print into it.
void fill_standard_descriptors() {
    for (int fd = 0; fd <= 2; ++fd)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)!open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
}

int run(int argc, char** argv) {
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
        case options::Command::quantize: return commands::quantize_command(options.quantize, std::cout, std::cerr);
        case options::Command::version: return commands::version_command(options.version_json, std::cout);
        case options::Command::help: std::cout << options::help(options.help_of, options.help_format); return 0;
        case options::Command::none: std::cerr << options::help(options::Command::none, options::HelpFormat::text); return 2;
    }
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    fill_standard_descriptors();
    int code;
    try {
        code = run(argc, argv);
    } catch (const std::exception& error) {  // no memory, no threads, no descriptors at start: a line, not a core dump
        std::fprintf(stderr, "hearth: %s\n", error.what());
        return 1;
    }
    // A full disk or a closed output must not pass for success.
    std::cout.flush();
    if (code == 0 && (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout))) {
        std::fprintf(stderr, "hearth: the output could not be written\n");
        return 1;
    }
    return code;
}
