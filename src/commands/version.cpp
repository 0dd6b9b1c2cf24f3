#include "commands/version.h"

#include <ostream>

#include "base/version.h"

namespace commands {

int version_command(bool json, std::ostream& out) {
#if defined(__clang__)
    constexpr std::string_view compiler = "clang " __clang_version__;
#else
    constexpr std::string_view compiler = "gcc " __VERSION__;
#endif
    if (json) {
        out << "{\"name\":\"hearth\",\"version\":\"" << version << "\",\"compiler\":\"" << compiler << "\",\"backends\":[\"cpu\"]}\n";
    } else {
        out << "hearth " << version << " (" << compiler << ", cpu)\n";
    }
    return 0;
}

}  // namespace commands
