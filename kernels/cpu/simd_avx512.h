// The vector vocabulary (simd_scalar.h) in AVX-512. Included inside namespace kernels::cpu::avx512 and its target region.

struct V { __m512 v; };

static inline __mmask16 first_lanes(uint32_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffffu : (1u << n) - 1); }

static inline V set1(float value) { return {_mm512_set1_ps(value)}; }
static inline V load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline void store(float* p, V v) { _mm512_storeu_ps(p, v.v); }
static inline V load_first(const float* p, uint32_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
static inline void store_first(float* p, V v, uint32_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v.v); }
static inline V keep_first(V v, uint32_t n, V fill) { return {_mm512_mask_mov_ps(fill.v, first_lanes(n), v.v)}; }
static inline V load_half(const uint16_t* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
static inline V load_bfloat(const uint16_t* p) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16))};
}
static inline void store_half(uint16_t* p, V v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static inline V add(V a, V b) { return {_mm512_add_ps(a.v, b.v)}; }
static inline V sub(V a, V b) { return {_mm512_sub_ps(a.v, b.v)}; }
static inline V mul(V a, V b) { return {_mm512_mul_ps(a.v, b.v)}; }
static inline V div(V a, V b) { return {_mm512_div_ps(a.v, b.v)}; }
static inline V fma(V a, V b, V c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
static inline float fma1(float a, float b, float c) { return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c))); }
static inline V maximum(V a, V b) { return {_mm512_max_ps(a.v, b.v)}; }
static inline V minimum(V a, V b) { return {_mm512_min_ps(a.v, b.v)}; }
static inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
static inline V swap_pairs(V v) { return {_mm512_permute_ps(v.v, 0xb1)}; }
static inline V add_exponent(V v, V shifted) {
    return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v.v), _mm512_slli_epi32(_mm512_castps_si512(shifted.v), 23)))};
}
static inline __m256 upper(V v) { return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v.v), 1)); }
static inline float sum_lanes(V v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v.v), upper(v));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float max_lanes(V v) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v.v), upper(v));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float max_magnitude(V a, V b) {
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i sixteen = _mm512_max_epu32(_mm512_and_si512(_mm512_castps_si512(a.v), mask), _mm512_and_si512(_mm512_castps_si512(b.v), mask));
    const __m256i eight = _mm256_max_epu32(_mm512_castsi512_si256(sixteen), _mm512_extracti64x4_epi64(sixteen, 1));
    const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1))));
}
static inline int32_t store_codes(int8_t* p, V v) {
    const __m512i shifted = _mm512_castps_si512(_mm512_add_ps(v.v, _mm512_set1_ps(12582912.0f)));
    const __m128i codes = _mm512_cvtepi32_epi8(shifted);  // keeps the low byte
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), codes);
    // Sum: codes + 128 are unsigned bytes; sad adds eight of them, and 16 * 128 comes off again.
    const __m128i sums = _mm_sad_epu8(_mm_xor_si128(codes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

// Tile sizes of generic/attention.h: 12 score chains and 24 value chains keep two FMA pipes busy in 32 registers.
static constexpr uint32_t kQueries = 6;
static constexpr uint32_t kScorePanels = 2;
static constexpr uint32_t kValueLanes = 4;
