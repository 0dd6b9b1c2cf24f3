// The vector vocabulary (simd_scalar.h) in AVX2, FMA and F16C: 16 floats are two vectors, lanes 0-7 and 8-15. Included inside
// namespace kernels::cpu::avx2 and its target region.

struct V { __m256 lo, hi; };

static inline V set1(float value) { const __m256 v = _mm256_set1_ps(value); return {v, v}; }
static inline V load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline void store(float* p, V v) { _mm256_storeu_ps(p, v.lo); _mm256_storeu_ps(p + 8, v.hi); }
// All ones in lanes below n - first (any n), lanes counted from `first`.
static inline __m256i lanes_below(uint32_t n, int first) {
    const __m256i index = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 16 ? 16 : static_cast<int>(n)), index);
}
static inline V load_first(const float* p, uint32_t n) {
    return {_mm256_maskload_ps(p, lanes_below(n, 0)), _mm256_maskload_ps(p + 8, lanes_below(n, 8))};
}
static inline void store_first(float* p, V v, uint32_t n) {
    _mm256_maskstore_ps(p, lanes_below(n, 0), v.lo);
    _mm256_maskstore_ps(p + 8, lanes_below(n, 8), v.hi);
}
static inline V keep_first(V v, uint32_t n, V fill) {
    return {_mm256_blendv_ps(fill.lo, v.lo, _mm256_castsi256_ps(lanes_below(n, 0))), _mm256_blendv_ps(fill.hi, v.hi, _mm256_castsi256_ps(lanes_below(n, 8)))};
}
static inline V load_half(const uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
static inline __m256 bfloat8(const uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
static inline V load_bfloat(const uint16_t* p) { return {bfloat8(p), bfloat8(p + 8)}; }
static inline void store_half(uint16_t* p, V v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT));
}

static inline V add(V a, V b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
static inline V sub(V a, V b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
static inline V mul(V a, V b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
static inline V div(V a, V b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
static inline V fma(V a, V b, V c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
static inline float fma1(float a, float b, float c) { return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c))); }
static inline V maximum(V a, V b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
static inline V minimum(V a, V b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
static inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
static inline V swap_pairs(V v) { return {_mm256_permute_ps(v.lo, 0xb1), _mm256_permute_ps(v.hi, 0xb1)}; }
static inline __m256 add_exponent8(__m256 v, __m256 shifted) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_slli_epi32(_mm256_castps_si256(shifted), 23)));
}
static inline V add_exponent(V v, V shifted) { return {add_exponent8(v.lo, shifted.lo), add_exponent8(v.hi, shifted.hi)}; }
static inline float sum_lanes(V v) {
    const __m256 eight = _mm256_add_ps(v.lo, v.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float max_lanes(V v) {
    const __m256 eight = _mm256_max_ps(v.lo, v.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
static inline float max_magnitude(V a, V b) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const __m256i ab = _mm256_max_epu32(_mm256_and_si256(_mm256_castps_si256(a.lo), mask), _mm256_and_si256(_mm256_castps_si256(a.hi), mask));
    const __m256i cd = _mm256_max_epu32(_mm256_and_si256(_mm256_castps_si256(b.lo), mask), _mm256_and_si256(_mm256_castps_si256(b.hi), mask));
    const __m256i eight = _mm256_max_epu32(ab, cd);
    const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1))));
}
static inline int32_t store_codes(int8_t* p, V v) {
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    const __m256i low_byte = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i lo = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_add_ps(v.lo, magic)), low_byte);
    const __m256i hi = _mm256_shuffle_epi8(_mm256_castps_si256(_mm256_add_ps(v.hi, magic)), low_byte);
    const __m128i codes_lo = _mm_unpacklo_epi32(_mm256_castsi256_si128(lo), _mm256_extracti128_si256(lo, 1));
    const __m128i codes_hi = _mm_unpacklo_epi32(_mm256_castsi256_si128(hi), _mm256_extracti128_si256(hi, 1));
    const __m128i codes = _mm_unpacklo_epi64(codes_lo, codes_hi);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), codes);
    // Sum: codes + 128 are unsigned bytes; sad adds eight of them, and 16 * 128 comes off again.
    const __m128i sums = _mm_sad_epu8(_mm_xor_si128(codes, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi32(sums, 2) - 16 * 128;
}

// Tile sizes of generic/attention.h: 8 accumulators of the 16 registers.
static constexpr uint32_t kQueries = 4;
static constexpr uint32_t kScorePanels = 1;
static constexpr uint32_t kValueLanes = 1;
