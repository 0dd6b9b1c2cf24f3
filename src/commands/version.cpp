#include "commands/version.h"

#include <ostream>
#include <string>
#include <string_view>

#include "base/version.h"
#include "kernels/cpu/cpu.h"

namespace commands {

int version_command(bool json, std::ostream& out) {
#if defined(__clang__)
    constexpr std::string_view compiler = "clang " __clang_version__;
#else
    constexpr std::string_view compiler = "gcc " __VERSION__;
#endif
    std::string isas;  // that this machine runs, best first
    for (std::string_view isa : kernels::cpu::known_isas())
        if (kernels::cpu::isa_runs_here(isa)) isas += (isas.empty() ? "" : json ? "\",\"" : ", ") + std::string(isa);
    if (json) {
        out << "{\"name\":\"hearth\",\"version\":\"" << version << "\",\"compiler\":\"" << compiler << "\",\"cpu_paths\":[\"" << isas << "\"]}\n";
    } else {
        out << "hearth " << version << " (" << compiler << "; cpu paths here: " << isas << ")\n";
    }
    return 0;
}

}  // namespace commands
