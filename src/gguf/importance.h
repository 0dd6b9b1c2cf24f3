// An importance matrix: for each matrix of a model and each of its columns, how much an error there counts, measured as the
// mean square of the activations that met it. Reads llama.cpp's two formats: GGUF (tensors NAME.in_sum2 and NAME.counts) and
// the older binary one (.dat).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gguf {

struct Importance {
    // Of tensor NAME: one value a column, and that once for each expert. Finite, not negative.
    std::map<std::string, std::vector<float>, std::less<>> columns;
    std::vector<std::string> datasets;  // what it was measured on, as the file says
    uint32_t chunks = 0;

    // Pure. `name` is used in messages only.
    static base::Result<Importance> parse(std::span<const std::byte> bytes, std::string_view name);
};

}  // namespace gguf
