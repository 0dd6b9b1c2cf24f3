// Cuts text into pre-tokens: the pieces inside which BPE merges. Hand-written, linear, over valid UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace text {

// The length in bytes of the next pre-token of `text` (not empty, valid UTF-8) under the pipeline of SmolLM2:
// Digits(individual_digits) and then GPT-2's pattern on each piece without digits:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t smollm_pre_token(std::string_view text);

}  // namespace text
