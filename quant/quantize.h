// Whole rows between fp32 and any format. The definition is codec.h; the bytes of the encoders equal those of the
// PyPI package `gguf`. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/types.h"

namespace quant {

// dst[0, n) = the weights of n / block_elements consecutive blocks at `src` (any alignment).
// n is a multiple of info(type).block_elements (CHECKed).
void dequantize_row(Type type, const std::byte* src, float* dst, uint64_t n);

// Types that quantize_row can write: F32 F16 BF16 Q8_0 Q4_0 Q4_1.
bool can_quantize(Type type);

// dst[0, row_bytes(type, n)) = n weights encoded. n as above; can_quantize(type) (CHECKed). Values of the integer
// formats should be finite: a NaN or infinity spoils its block's scale (never the process), and a block whose scale
// is beyond fp16's 65504 gets an infinite one.
void quantize_row(Type type, const float* src, std::byte* dst, uint64_t n);

}  // namespace quant
