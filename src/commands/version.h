// `hearth version`: version, compiler, the CPU paths that this machine runs.
#pragma once

#include <iosfwd>

namespace commands {

int version_command(bool json, std::ostream& out);

}  // namespace commands
