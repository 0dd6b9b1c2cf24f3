// `hearth inspect`: what a model file holds and what serving it would take. Loads nothing: reads the header only, unless it checks.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "base/limits.h"
#include "base/mapped_file.h"

namespace commands {

struct InspectOptions {
    std::string path;
    bool json = false;
    bool check = false;                               // name what is odd (check.h) instead of showing all
    uint32_t context = 0;                             // tokens of a sequence; 0: the context length of the file
    uint32_t sequences = limits::sequences_running;   // that run at once, each with a full context
    std::string kv_type = "f16";                      // f16 or f32
};

// Prints to `out`; a refusal is one line on `err`. Text of the file is escaped in the text form, and the JSON form is valid
// whatever the file holds. Returns the exit code: 0, or 2 for a file that is no sound GGUF (nothing on `out`), for a llama
// model whose metadata or tensors are wrong (metadata and tensors on `out`, for finding out why), or for a bad option.
// A sound file of an architecture that is not built is described, says so, and gives 0.
// With `check` every byte is read, and the code is 0 when nothing is wrong with the model, 1 when something is, and 2 for a
// file that is no sound GGUF.
int inspect_command(const InspectOptions& options, std::ostream& out, std::ostream& err, const base::FileSystem& files = base::system_files());

}  // namespace commands
