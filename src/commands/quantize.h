// `hearth quantize`: a model file in another format.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "base/mapped_file.h"

namespace commands {

struct QuantizeOptions {
    std::string in, out;            // paths
    std::string type;               // a recipe's name (quant/recipe.h)
    std::string importance;         // path of an importance matrix; empty: none
    uint32_t threads = 0;           // 0: what count_cpus() says
    bool allow_requantize = false;  // take tensors that are quantized already
};

// Reads `in` once, a piece at a time, writes OUT.partial and gives it the name OUT when every block of it was found to decode to
// finite numbers and its directory to be the planned one; so OUT is either what it was before or whole. A summary goes to `out`, a
// refusal is one line on `err`. Exit codes: 0; 2 for a bad file, type or option; 1 when OUT cannot be written.
// An interrupt (SIGINT, SIGTERM, SIGHUP) removes OUT.partial.
int quantize_command(const QuantizeOptions& options, std::ostream& out, std::ostream& err, const base::FileSystem& files = base::system_files());

}  // namespace commands
