// The encoders, to be included after search.inc.h in the same namespace and target region.

// Mean square of a block's weights; only a block with importance needs it.
inline float energy_of(const float* x, int n, const float* importance) {
    float sum = 0;
    if (importance)
        for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum / static_cast<float>(n);
}

// --- one block, one scale --------------------------------------------------------------------------------------------

// Where a search for a scale starts (fit_scale).
struct Starts {
    float first, step;
    int count, steps;
    int rounds = 1;  // of the block's scale (encode_levels)
};

template <typename Codes, typename Block>
void encode_scaled(const float* x, const float* importance, Block& out, Starts starts) {
    Group<32> g;
    g.load(x, importance, energy_of(x, 32, importance));
    float scale = fit_scale<Codes>(g, starts.first, starts.step, starts.count, starts.steps);
    const uint16_t d = f32_to_f16(scale);
    uint8_t codes[32];
    write_codes<Codes, 32>(x, f16_to_f32(d), 0, codes);
    pack(out, d, codes);
}

template <int High, typename Block>
void encode_line(const float* x, const float* importance, Block& out) {
    Group<32> g;
    g.load(x, importance, energy_of(x, 32, importance));
    const Line line = fit_line<High>(g, false, 0.2f, 3, 3);
    const uint16_t d = f32_to_f16(line.scale), m = f32_to_f16(line.offset);
    uint8_t codes[32];
    write_codes<Integers<0, High>, 32>(x, f16_to_f32(d), f16_to_f32(m), codes);
    pack(out, d, m, codes);
}

// --- a block of groups, each with an integer level of the block's scale ------------------------------------------------

// x ~ (d * level) * code
template <typename Codes, int N, typename Block>
void encode_levels(const float* x, const float* importance, Block& out, Starts starts, int level_min, int level_max) {
    constexpr int groups = 256 / N;
    const float energy = energy_of(x, 256, importance);
    Group<N> g[groups];
    float scales[groups], extreme = 0;
    for (int k = 0; k < groups; ++k) {
        g[k].load(x + k * N, importance ? importance + k * N : nullptr, energy);
        scales[k] = fit_scale<Codes>(g[k], starts.first, starts.step, starts.count, starts.steps);
        if (__builtin_fabsf(scales[k]) > __builtin_fabsf(extreme)) extreme = scales[k];
    }
    // The greatest scale takes the outermost level; then levels given d, d given levels, and so on, keeping the best.
    uint16_t best_d = 0;
    int8_t best_levels[groups] = {};
    float best_error = 0, d = extreme / static_cast<float>(level_min);
    for (int round = 0; round < starts.rounds; ++round) {
        const uint16_t half = f32_to_f16(d);
        const float rounded = f16_to_f32(half);
        int8_t levels[groups];
        float error = 0, xa = 0, aa = 0;
        for (int k = 0; k < groups; ++k) {
            const LevelFit fit = fit_level<Codes>(g[k], rounded, scales[k], level_min, level_max);
            const float level = static_cast<float>(fit.level);
            levels[k] = static_cast<int8_t>(fit.level);
            error += fit.error;
            xa += level * fit.xq;
            aa += level * level * fit.qq;
        }
        if (round == 0 || error < best_error) {
            best_error = error;
            best_d = half;
            __builtin_memcpy(best_levels, levels, sizeof levels);
        }
        d = xa * inverse(aa);
    }
    const float rounded = f16_to_f32(best_d);
    uint8_t codes[256];
    for (int k = 0; k < groups; ++k) write_codes<Codes, N>(x + k * N, rounded * static_cast<float>(best_levels[k]), 0, codes + k * N);
    pack(out, best_d, best_levels, codes);
}

// x ~ (d * scale) * code - dmin * min
template <int High, int N, typename Block>
void encode_lines(const float* x, const float* importance, Block& out, float cut_max, int starts, int steps, int level_max) {
    constexpr int groups = 256 / N;
    const float energy = energy_of(x, 256, importance);
    Group<N> g[groups];
    Line lines[groups];
    float scale_max = 0, min_max = 0;
    for (int k = 0; k < groups; ++k) {
        g[k].load(x + k * N, importance ? importance + k * N : nullptr, energy);
        lines[k] = fit_line<High>(g[k], true, cut_max, starts, steps);
        if (lines[k].scale > scale_max) scale_max = lines[k].scale;
        if (-lines[k].offset > min_max) min_max = -lines[k].offset;
    }
    uint16_t best_d = 0, best_dmin = 0;
    uint8_t best_scales[groups] = {}, best_mins[groups] = {};
    float best_error = 0;
    float d = scale_max / static_cast<float>(level_max), dmin = min_max / static_cast<float>(level_max);
    for (int round = 0; round < 3; ++round) {
        const uint16_t half_d = f32_to_f16(d), half_dmin = f32_to_f16(dmin);
        const float rounded_d = f16_to_f32(half_d), rounded_dmin = f16_to_f32(half_dmin);
        uint8_t scales[groups], mins[groups];
        // Normal equations of the block: a = scale * q, b = -min.
        float error = 0, aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
        for (int k = 0; k < groups; ++k) {
            const LinePick pick = fit_levels<High>(g[k], rounded_d, rounded_dmin, lines[k], level_max);
            scales[k] = static_cast<uint8_t>(pick.scale);
            mins[k] = static_cast<uint8_t>(pick.min);
            error += pick.error;
            const float s = static_cast<float>(pick.scale), m = static_cast<float>(pick.min);
            aa += s * s * pick.qq;
            ab -= s * m * pick.q1;
            bb += m * m * g[k].sum_w;
            xa += s * pick.xq;
            xb -= m * g[k].sum_wx;
        }
        if (round == 0 || error < best_error) {
            best_error = error;
            best_d = half_d;
            best_dmin = half_dmin;
            __builtin_memcpy(best_scales, scales, sizeof scales);
            __builtin_memcpy(best_mins, mins, sizeof mins);
        }
        const float determinant = aa * bb - ab * ab;
        if (determinant > 0 && bb > 0) {
            d = (xa * bb - xb * ab) * inverse(determinant);
            dmin = (xb * aa - xa * ab) * inverse(determinant);
        } else {
            d = xa * inverse(aa);
        }
        if (!(d > 0)) d = rounded_d;
        if (!(dmin > 0)) dmin = rounded_dmin;
    }
    const float rounded_d = f16_to_f32(best_d), rounded_dmin = f16_to_f32(best_dmin);
    uint8_t codes[256];
    for (int k = 0; k < groups; ++k)
        write_codes<Integers<0, High>, N>(x + k * N, rounded_d * static_cast<float>(best_scales[k]),
                                          -(rounded_dmin * static_cast<float>(best_mins[k])), codes + k * N);
    pack(out, best_d, best_dmin, best_scales, best_mins, codes);
}

template <typename Block, typename Body>
LANES_INLINE void each_block(const float* x, const float* importance, std::byte* dst, uint64_t n, Body&& body) {
    constexpr uint32_t elements = sizeof(Block) < 32 ? 32 : 256;
    for (uint64_t k = 0; k < n / elements; ++k)
        body(x + k * elements, importance ? importance + k * elements : nullptr, reinterpret_cast<Block*>(dst)[k]);
}

void encode(Type type, const float* x, const float* importance, std::byte* dst, uint64_t n) {
#define EACH(Struct, ...) \
    each_block<Struct>(x, importance, dst, n, [](const float* v, const float* i, Struct& out) __attribute__((always_inline)) { __VA_ARGS__; })
    switch (type) {
        // Starts of a symmetric search: around the extreme weight at the outermost negative code, on either side of it.
        case Type::q4_0: return EACH(BlockQ4_0, encode_scaled<Integers<-8, 7>>(v, i, out, {-9.5f, 0.2f, 16, 2}));
        case Type::q5_0: return EACH(BlockQ5_0, encode_scaled<Integers<-16, 15>>(v, i, out, {-18, 0.25f, 16, 2}));
        case Type::iq4_nl: return EACH(BlockIQ4_NL, encode_scaled<Levels>(v, i, out, {-150, 4, 16, 2}));
        case Type::q4_1: return EACH(BlockQ4_1, encode_line<15>(v, i, out));
        case Type::q5_1: return EACH(BlockQ5_1, encode_line<31>(v, i, out));
        case Type::q3_k: return EACH(BlockQ3_K, encode_levels<Integers<-4, 3>, 16>(v, i, out, {-5.5f, 0.3f, 8, 2, 1}, -32, 31));
        case Type::q6_k: return EACH(BlockQ6_K, encode_levels<Integers<-32, 31>, 16>(v, i, out, {-33.5f, 0.4f, 8, 2, 2}, -128, 127));
        case Type::iq4_xs: return EACH(BlockIQ4_XS, encode_levels<Levels, 32>(v, i, out, {-150, 4, 16, 2, 2}, -32, 31));
        case Type::q2_k: return EACH(BlockQ2_K, encode_lines<3, 16>(v, i, out, 0.4f, 3, 3, 15));
        case Type::q4_k: return EACH(BlockQ4_K, encode_lines<15, 32>(v, i, out, 0.2f, 3, 3, 63));
        case Type::q5_k: return EACH(BlockQ5_K, encode_lines<31, 32>(v, i, out, 0.1f, 2, 3, 63));
        default: CHECK(!"a format that needs no search");
    }
#undef EACH
}
