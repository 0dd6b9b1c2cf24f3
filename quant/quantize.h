// Whole rows between fp32 and any format. The definition is codec.h; the bytes of the encoders that follow a
// rounding rule (Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, the float formats) equal those of the PyPI package `gguf`. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/types.h"

namespace quant {

// dst[0, n) = the weights of n / block_elements consecutive blocks at `src` (any alignment).
// n is a multiple of info(type).block_elements (CHECKed).
void dequantize_row(Type type, const std::byte* src, float* dst, uint64_t n);

// Whether every weight of these blocks decodes to a finite number. n as above.
bool all_finite(Type type, const std::byte* src, uint64_t n);

// dst[0, row_bytes(type, n)) = n weights of a row encoded. n as above. Values of the integer formats should be finite: a NaN
// or infinity spoils its block (never the process), and a block whose scale is beyond fp16's 65504 gets an infinite one.
//
// `importance`: n non-negative weights, one for each column, of what an error there costs; null: every column alike.
// F32, F16, BF16 and Q8_0 have no choice to make and don't look at it. Without importance Q4_0, Q4_1, Q5_0 and Q5_1 follow
// their fixed rounding rules, byte for byte as other programs do; with it, and for all other formats, the encoder searches
// for the least weighted square error. The bytes are the same on every machine.
void quantize_row(Type type, const float* src, std::byte* dst, uint64_t n, const float* importance = nullptr);

}  // namespace quant
