// Rotary positions (Su et al. 2021) and the ways to stretch them, as frequencies computed once at load.
#pragma once

#include <string_view>

#include "model/config.h"
#include "model/key_reader.h"

namespace model {

inline constexpr double smallest_rope_base = 1e-6;

// Appends to config.ropes the one that the file describes: base^(-2i / n_rot) by `base_key`, scaled as
// rope.scaling.* says: none, linear (all divided), yarn (Peng et al. 2023: fast pairs kept, slow ones divided, magnitude
// 1 + 0.1 ln factor), longrope (Ding et al. 2024: two lists of divisors, the long one for contexts beyond the original); and
// by the divisors of rope_freqs.weight (Llama 3). Other kinds are refused by name.
void add_rope(KeyReader& reader, Config& config, kernels::RopePairs pairs, std::string_view base_key, double base_missing);
// The same without any scaling.
void add_unscaled_rope(KeyReader& reader, Config& config, kernels::RopePairs pairs, std::string_view base_key, double base_missing);

}  // namespace model
