// The llama architecture once more, in double and in plain loops, as the right value of tests: written from the papers (RMSNorm:
// Zhang and Sennrich 2019; rotary positions: Su et al. 2021; grouped queries: Ainslie et al. 2023; SwiGLU: Shazeer 2020; Llama:
// Touvron et al. 2023) and the GGUF specification. Shares with the program only the parser of files and quant::dequantize_row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gguf/file.h"

namespace reference {

// Logits of every position of one sequence of decoded weights: (tokens, n_vocab). No cache, all positions at once.
// The file is one that model::Model::load accepts (CHECKed where it is not).
std::vector<double> logits(const gguf::File& file, std::span<const int32_t> tokens);

// How far `got` is from `right`, both (n).
struct Distance {
    double nmse = 0;          // sum (got - right)^2 / sum (right - mean of right)^2
    double max_in_sigmas = 0;  // max |got - right| / standard deviation of right
};
Distance distance(std::span<const float> got, std::span<const double> right);

}  // namespace reference
