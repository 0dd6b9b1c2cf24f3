// The searching encoders for any machine.
#include "quant/encode.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/check.h"
#include "quant/codec.h"
#include "quant/pack.h"

namespace quant::detail {
namespace {

#define LANES_PART_BYTES 16
#if defined(__SSE2__)
#define LANES_MIN _mm_min_ps
#define LANES_MAX _mm_max_ps
#endif
#include "quant/search.inc.h"
#include "quant/encode.inc.h"

}  // namespace

void encode_portable(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n) { encode(type, x, importance, dst, n); }

Encode best_encode() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return encode_avx2;
#endif
    return encode_portable;
}

}  // namespace quant::detail
