// The searching encoders with 256-bit registers. No FMA: the bits must be those of the portable form.
#if defined(__x86_64__)
#include "quant/encode.h"

#include <immintrin.h>

#include "base/check.h"
#include "quant/codec.h"
#include "quant/pack.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

namespace quant::detail {
namespace {

#define LANES_PART_BYTES 32
#define LANES_MIN _mm256_min_ps
#define LANES_MAX _mm256_max_ps
#include "quant/search.inc.h"
#include "quant/encode.inc.h"

}  // namespace

void encode_avx2(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n) { encode(type, x, importance, dst, n); }

}  // namespace quant::detail

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
