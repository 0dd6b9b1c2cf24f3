// Algorithms written once over the vector vocabulary (simd_scalar.h names its words); included inside each ISA's
// namespace and target region, so there is no include guard and there are no includes here.
// One V is 16 floats in every ISA, and every fused step is written as fma: that makes the bits the same in all of them.

// exp(x) for x clamped to [-87, 88]; exp(0) is exactly 1; NaN stays NaN. Relative error below 2 ulp.
// x = n ln2 + r, |r| <= ln2 / 2: exp(r) = 1 + (r + r^2 g(r)), g a polynomial fitted to relative error 5e-11.
static inline V exp_lanes(V x) {
    // maximum(a, b) returns b when either is NaN, so the order of the operands lets NaN through.
    x = minimum(set1(88.0f), maximum(set1(-87.0f), x));
    const V magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, which then sits in the low bits
    const V shifted = fma(x, set1(1.44269504f), magic);
    const V n = sub(shifted, magic);
    V r = fma(n, set1(-0.693359375f), x);          // upper bits of ln2: the product is exact for |n| < 2^12
    r = fma(n, set1(2.12194440e-4f), r);           // the rest of -ln2
    V g = set1(0.000197902962f);
    g = fma(g, r, set1(0.00139447034f));
    g = fma(g, r, set1(0.00833349768f));
    g = fma(g, r, set1(0.0416662954f));
    g = fma(g, r, set1(0.166666657f));
    g = fma(g, r, set1(0.5f));
    const V y = add(fma(g, mul(r, r), r), set1(1.0f));
    return add_exponent(y, shifted);
}

static inline V silu_lanes(V x) { return div(x, add(set1(1.0f), exp_lanes(sub(set1(0.0f), x)))); }

static void rms_norm(const float* x, const float* weight, float eps, uint32_t n, float* out) {
    V squares = set1(0.0f);
    uint32_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const V v = load(x + i);
        squares = fma(v, v, squares);
    }
    if (i < n) {
        const V v = load_first(x + i, n - i);
        squares = fma(v, v, squares);
    }
    const float mean = sum_lanes(squares) / static_cast<float>(n);
    const V factor = set1(1.0f / square_root(mean + eps));
    for (i = 0; i + 16 <= n; i += 16) store(out + i, mul(mul(load(x + i), factor), load(weight + i)));
    if (i < n) store_first(out + i, mul(mul(load_first(x + i, n - i), factor), load_first(weight + i, n - i)), n - i);
}

// 1/2 (1 + tanh(u)) = 1 / (1 + exp(-2u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
static inline V gelu_lanes(V x) {
    const V cube = mul(mul(x, x), x);
    const V minus_2u = mul(set1(-1.59576912f), fma(cube, set1(0.044715f), x));
    return div(x, add(set1(1.0f), exp_lanes(minus_2u)));
}

// cap * tanh(x / cap), tanh(y) = 1 - 2 / (1 + exp(2y)): an absolute error of some 1e-7 cap.
static inline V soft_cap_lanes(V x, V cap, V two_over_cap) {
    const V e = exp_lanes(mul(x, two_over_cap));
    return mul(cap, sub(set1(1.0f), div(set1(2.0f), add(set1(1.0f), e))));
}

template <V (*Function)(V)>
static void activate_mul(const float* gate, const float* up, float* out, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(out + i, mul(Function(load(gate + i)), load(up + i)));
    if (i < n) {
        const uint32_t rest = static_cast<uint32_t>(n - i);
        store_first(out + i, mul(Function(load_first(gate + i, rest)), load_first(up + i, rest)), rest);
    }
}

static void scale_by(float* x, float factor, size_t n) {
    const V f = set1(factor);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, mul(load(x + i), f));
    if (i < n) {
        const uint32_t rest = static_cast<uint32_t>(n - i);
        store_first(x + i, mul(load_first(x + i, rest), f), rest);
    }
}

static void add_scaled(float* x, const float* y, float factor, size_t n) {
    const V f = set1(factor);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, fma(load(y + i), f, load(x + i)));
    if (i < n) {
        const uint32_t rest = static_cast<uint32_t>(n - i);
        store_first(x + i, fma(load_first(y + i, rest), f, load_first(x + i, rest)), rest);
    }
}

static void soft_cap(float* x, float cap, size_t n) {
    const V c = set1(cap), f = set1(2.0f / cap);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, soft_cap_lanes(load(x + i), c, f));
    if (i < n) {
        const uint32_t rest = static_cast<uint32_t>(n - i);
        store_first(x + i, soft_cap_lanes(load_first(x + i, rest), c, f), rest);
    }
}

static void add_into(float* x, const float* y, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) store(x + i, add(load(x + i), load(y + i)));
    if (i < n) {
        const uint32_t rest = static_cast<uint32_t>(n - i);
        store_first(x + i, add(load_first(x + i, rest), load_first(y + i, rest)), rest);
    }
}

static void rope_neighbours(float* x, uint32_t n_heads, uint32_t head_dim, uint32_t n_rot, const float* cos_sin) {
    const float* sines = cos_sin + n_rot;
    for (uint32_t h = 0; h < n_heads; ++h, x += head_dim) {
        uint32_t i = 0;
        for (; i + 16 <= n_rot; i += 16) {
            const V v = load(x + i);
            store(x + i, fma(v, load(cos_sin + i), mul(swap_pairs(v), load(sines + i))));
        }
        if (i < n_rot) {
            const uint32_t rest = n_rot - i;
            const V v = load_first(x + i, rest);
            store_first(x + i, fma(v, load_first(cos_sin + i, rest), mul(swap_pairs(v), load_first(sines + i, rest))), rest);
        }
    }
}

static void rope_halves(float* x, uint32_t n_heads, uint32_t head_dim, uint32_t n_rot, const float* cos_sin) {
    const uint32_t half = n_rot / 2;
    const float* sines = cos_sin + n_rot;
    for (uint32_t h = 0; h < n_heads; ++h, x += head_dim) {
        uint32_t i = 0;
        for (; i + 16 <= half; i += 16) {
            const V a = load(x + i), b = load(x + half + i);
            store(x + i, fma(a, load(cos_sin + i), mul(b, load(sines + i))));
            store(x + half + i, fma(b, load(cos_sin + half + i), mul(a, load(sines + half + i))));
        }
        if (i < half) {
            const uint32_t rest = half - i;
            const V a = load_first(x + i, rest), b = load_first(x + half + i, rest);
            store_first(x + i, fma(a, load_first(cos_sin + i, rest), mul(b, load_first(sines + i, rest))), rest);
            store_first(x + half + i, fma(b, load_first(cos_sin + half + i, rest), mul(a, load_first(sines + half + i, rest))), rest);
        }
    }
}

// Blocks of 32, t = x * (127 / max |x|): hi = t to the nearest, ties to even; lo = (t - hi) * 256 to the nearest, kept in
// [-127, 127]. The maximum is taken over bit patterns, so that a NaN or an infinity ends in the scale and spoils the row visibly. A
// block below 1e-35 is zero.
static void quantize(const QuantizeArgs& a) {
    const V rounder = set1(12582912.0f);  // 1.5 * 2^23: adding and subtracting it rounds to the nearest integer, ties to even
    const bool two = a.levels == 2;
    const CodeArrays& out = a.out;
    for (uint32_t b = 0; b < a.n_blocks; ++b) {
        for (uint32_t c = 0; c < a.columns; ++c) {
            const float* x = a.x + c * a.stride + size_t{b} * block_k;
            const V low = load(x), high = load(x + 16);
            const float peak = max_magnitude(low, high);
            const bool tiny = peak < 1e-35f;
            const V factor = set1(tiny ? 0.0f : 127.0f / peak);
            float scale = tiny ? 0.0f : peak / 127.0f;
            const V low_t = mul(low, factor), high_t = mul(high, factor);
            int8_t* codes = out.codes + (size_t{b} * a.levels * a.columns + c) * block_k;
            int32_t sum_low = store_codes(codes, low_t), sum_high = store_codes(codes + 16, high_t);
            if (two) {
                const V low_rest = sub(low_t, sub(add(low_t, rounder), rounder)), high_rest = sub(high_t, sub(add(high_t, rounder), rounder));
                const V most = set1(127.0f), least = set1(-127.0f), step = set1(256.0f);
                codes += size_t{a.columns} * block_k;
                sum_low = 256 * sum_low + store_codes(codes, minimum(most, maximum(least, mul(low_rest, step))));
                sum_high = 256 * sum_high + store_codes(codes + 16, minimum(most, maximum(least, mul(high_rest, step))));
                scale *= 1.0f / 256;
            }
            const size_t at = size_t{b} * a.columns + c;
            out.scale[at] = scale;
            out.scaled_sum[at] = scale * static_cast<float>(sum_low + sum_high);
            out.minus_8_sum[at] = -8 * (sum_low + sum_high);
            if (out.scaled_sum_halves) {
                const size_t half = size_t{b} * 2 * a.columns + c;
                out.scaled_sum_halves[half] = scale * static_cast<float>(sum_low);
                out.scaled_sum_halves[half + a.columns] = scale * static_cast<float>(sum_high);
                out.minus_8_sum_halves[half] = -8 * sum_low;
                out.minus_8_sum_halves[half + a.columns] = -8 * sum_high;
            }
        }
    }
}

static void install_elementwise(KernelTable& table) {
    table.rms_norm = rms_norm;
    table.activate_mul[static_cast<size_t>(Activation::silu)] = activate_mul<silu_lanes>;
    table.activate_mul[static_cast<size_t>(Activation::gelu_tanh)] = activate_mul<gelu_lanes>;
    table.scale = scale_by;
    table.add_scaled = add_scaled;
    table.soft_cap = soft_cap;
    table.add = add_into;
    table.rope[static_cast<size_t>(RopePairs::neighbours)] = rope_neighbours;
    table.rope[static_cast<size_t>(RopePairs::halves)] = rope_halves;
    table.quantize = quantize;
}
