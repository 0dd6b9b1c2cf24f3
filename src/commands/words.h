// How the commands say sizes and faults of a model file.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace commands {

// "1.5 GiB"
std::string bytes_text(uint64_t bytes);
// What is wrong with a file (bad_file, unsupported) begins with the file's name, `path` made printable. A message that does
// already, and what is wrong with an option, stay as they are.
base::Error in_file(base::Error error, const std::string& path);

}  // namespace commands
