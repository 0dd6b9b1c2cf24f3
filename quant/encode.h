// The encoders that search: for every format whose bytes are not fixed by a rounding rule. Each row of encoders is the same
// source (search.inc.h, encode.inc.h) compiled for one instruction set; all of them give the same bytes.
// Use quantize.h, which chooses.
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/types.h"

namespace quant::detail {

// dst = n weights of a row encoded so that sum(w * (x - decoded)^2) is small. `importance`: one non-negative weight for each
// column, or null. Q8_0 and the float formats are not here.
using Encode = void (*)(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n);

void encode_portable(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n);
#if defined(__x86_64__)
void encode_avx2(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n);
#endif

// The fastest that this machine runs.
Encode best_encode();

}  // namespace quant::detail
