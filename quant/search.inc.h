// The searches behind the encoders, to be included inside a namespace and a compiler target region (encode_*.cpp).
//
// Eight candidates are tried at once, one a lane: a lane holds a scale (and an offset), the loop runs over the weights of a
// group, and no sum crosses lanes. So the same source gives the same bits whatever the width of the machine's registers.
//
// One step of a lane: round the weights to codes with the lane's scale, then take the scale (and offset) that fits these
// codes best, by weighted least squares. Steps never make the fit worse (the two halves of Lloyd's algorithm), so a few
// starts with a few steps each find what one long search would.

// Everything that takes Lanes is inlined, so how they would be passed does not matter (meson.build: -Wno-psabi).
#define LANES_INLINE inline __attribute__((always_inline))

constexpr int lanes = 8;
constexpr int parts = 32 / LANES_PART_BYTES;  // a register holds one part; the including file says how wide it is
typedef float Part __attribute__((vector_size(LANES_PART_BYTES)));
typedef int PartMask __attribute__((vector_size(LANES_PART_BYTES)));

struct Mask {
    PartMask part[parts];
};

struct Lanes {
    Part part[parts];

    Lanes() = default;
    LANES_INLINE Lanes(float x) {
        for (int p = 0; p < parts; ++p) part[p] = Part{} + x;  // one number in every lane
    }
    LANES_INLINE Lanes(float a, float b, float c, float d, float e, float f, float g, float h) {
        const float all[lanes] = {a, b, c, d, e, f, g, h};
        __builtin_memcpy(part, all, sizeof all);
    }
    LANES_INLINE void get(float* out) const { __builtin_memcpy(out, part, sizeof part); }
};

#define LANES_OPERATOR(op)                                              \
    LANES_INLINE Lanes operator op(const Lanes& a, const Lanes& b) {    \
        Lanes out;                                                      \
        for (int p = 0; p < parts; ++p) out.part[p] = a.part[p] op b.part[p]; \
        return out;                                                     \
    }
LANES_OPERATOR(+)
LANES_OPERATOR(-)
LANES_OPERATOR(*)
LANES_OPERATOR(/)
#undef LANES_OPERATOR

LANES_INLINE void operator+=(Lanes& a, const Lanes& b) { a = a + b; }
LANES_INLINE Mask operator>(const Lanes& a, const Lanes& b) {
    Mask out;
    for (int p = 0; p < parts; ++p) out.part[p] = a.part[p] > b.part[p];
    return out;
}
// Bits: a lane of a mask is all ones or all zeros.
LANES_INLINE Lanes select(const Mask& mask, const Lanes& yes, const Lanes& no) {
    Lanes out;
    for (int p = 0; p < parts; ++p)
        out.part[p] = reinterpret_cast<Part>((mask.part[p] & reinterpret_cast<PartMask>(yes.part[p])) | (~mask.part[p] & reinterpret_cast<PartMask>(no.part[p])));
    return out;
}
// A NaN becomes the bound, so what follows stays finite: x < bound ? x : bound, which is how x86 defines its minimum.
LANES_INLINE Lanes at_most(const Lanes& x, float bound) {
#if defined(LANES_MIN)
    Lanes out, limit = bound;
    for (int p = 0; p < parts; ++p) out.part[p] = LANES_MIN(x.part[p], limit.part[p]);
    return out;
#else
    return select(Lanes(bound) > x, x, bound);
#endif
}
LANES_INLINE Lanes at_least(const Lanes& x, float bound) {
#if defined(LANES_MAX)
    Lanes out, limit = bound;
    for (int p = 0; p < parts; ++p) out.part[p] = LANES_MAX(x.part[p], limit.part[p]);
    return out;
#else
    return select(x > Lanes(bound), x, bound);
#endif
}

LANES_INLINE float pick(const Lanes& x, int lane) {
    float all[lanes];
    x.get(all);
    return all[lane];
}
LANES_INLINE int lane_of_greatest(const Lanes& x) {  // the first of equals
    float all[lanes];
    x.get(all);
    int best = 0;
    for (int lane = 1; lane < lanes; ++lane)
        if (all[lane] > all[best]) best = lane;
    return best;
}

constexpr float rounder = 0x1.8p23f;  // adding and taking it off rounds to an integer, halves to even, below 2^22

// What a code can be: `nearest` maps x / scale to the value of its code, `number` to the stored number.
template <int Low, int High>
struct Integers {
    static constexpr float low = Low, high = High;
    LANES_INLINE static Lanes nearest(const Lanes& x) { return (at_least(at_most(x, high), low) + rounder) - rounder; }
    LANES_INLINE static uint8_t number(float x) {
        const float bounded = x > low ? (x < high ? x : high) : low;
        return static_cast<uint8_t>(static_cast<int>((bounded + rounder) - rounder) - Low);
    }
};

// The levels of IQ4_NL and IQ4_XS. The number is how many midpoints lie below.
struct Levels {
    static constexpr float low = -127, high = 113;
    LANES_INLINE static Lanes nearest(const Lanes& x) {
        Lanes value = low;
        for (uint32_t k = 0; k + 1 < 16; ++k) {
            const float step = static_cast<float>(iq4_value(k + 1) - iq4_value(k));
            value += select(x > midpoint(k), step, 0);
        }
        return value;
    }
    LANES_INLINE static uint8_t number(float x) {
        int below = 0;
        for (uint32_t k = 0; k + 1 < 16; ++k) below += x > midpoint(k);
        return static_cast<uint8_t>(below);
    }
    LANES_INLINE static float midpoint(uint32_t k) { return static_cast<float>(iq4_value(k) + iq4_value(k + 1)) * 0.5f; }
};

// The weights of one group with their importance, and sums that no candidate changes.
template <int N>
struct Group {
    float x[N], w[N], wx[N];
    float sum_w, sum_wx;
    float least, greatest, extreme;  // extreme: the value of greatest magnitude

    // `importance` may be null; `energy` is the mean square of the block's weights.
    void load(const float* values, const float* importance, float energy) {
        float total = 0;
        for (int i = 0; i < N; ++i) {
            x[i] = values[i];
            // A column's importance says how much an error there counts; a weight that is large for its block counts more,
            // since its activations tend to be the ones that matter. The square root keeps that mild.
            w[i] = importance ? importance[i] * __builtin_sqrtf(energy + x[i] * x[i]) : 1.0f;
            total += w[i];
        }
        if (!(total > 0 && total <= 0x1.fffffep127f))  // all zero, or too large to sum: every column alike
            for (int i = 0; i < N; ++i) w[i] = 1;
        sum_w = sum_wx = 0;
        least = greatest = extreme = x[0];
        for (int i = 0; i < N; ++i) {
            wx[i] = w[i] * x[i];
            sum_w += w[i];
            sum_wx += wx[i];
            least = x[i] < least ? x[i] : least;
            greatest = x[i] > greatest ? x[i] : greatest;
            extreme = __builtin_fabsf(x[i]) > __builtin_fabsf(extreme) ? x[i] : extreme;
        }
    }
};

inline float inverse(float x) {
    const float y = 1 / x;
    return __builtin_fabsf(y) <= 0x1.fffffep127f ? y : 0;  // also for NaN
}

// --- x ~ scale * code ------------------------------------------------------------------------------------------------

// The scale of the least weighted square error. Starts: the extreme weight lies at first + k * step code units, k = 0..starts.
template <typename Codes, int N>
float fit_scale(const Group<N>& g, float first, float step, int starts, int steps) {
    const float unit = inverse(g.extreme);
    Lanes best_gain = 0, best_scale = 0;
    for (int start = 0; start < starts; start += lanes) {
        const float s = static_cast<float>(start);
        Lanes inverse_scale = (first + (Lanes(0, 1, 2, 3, 4, 5, 6, 7) + s) * step) * unit;
        for (int iteration = 0; iteration < steps; ++iteration) {
            Lanes xq = 0, qq = 0;
            for (int i = 0; i < N; ++i) {
                const Lanes q = Codes::nearest(g.x[i] * inverse_scale);
                xq += g.wx[i] * q;
                qq += g.w[i] * (q * q);
            }
            const Lanes scale = xq / qq, gain = xq * scale;  // the error is sum(w x^2) - gain
            const Mask better = gain > best_gain;
            best_gain = select(better, gain, best_gain);
            best_scale = select(better, scale, best_scale);
            inverse_scale = qq / xq;
        }
    }
    return pick(best_scale, lane_of_greatest(best_gain));
}

struct LevelFit {
    int level = 0;
    float error = 0, xq = 0, qq = 0;  // of that level
};

// The integer level in [level_min, level_max] for which scale = d * level fits best, near `wanted` / d.
template <typename Codes, int N>
LevelFit fit_level(const Group<N>& g, float d, float wanted, int level_min, int level_max) {
    const float centre = wanted * inverse(d);
    const float bounded = centre > static_cast<float>(level_min) ? (centre < static_cast<float>(level_max) ? centre : static_cast<float>(level_max))
                                                                  : static_cast<float>(level_min);
    const Lanes around = Lanes(-3, -2, -1, 0, 1, 2, 3, 4) + __builtin_floorf(bounded);
    const Lanes level = at_least(at_most(around, static_cast<float>(level_max)), static_cast<float>(level_min));
    const Lanes scale = level * d;
    const Lanes inverse_scale = select(scale * scale > 0, 1 / scale, 0);
    Lanes error = 0, xq = 0, qq = 0;
    for (int i = 0; i < N; ++i) {
        const Lanes q = Codes::nearest(g.x[i] * inverse_scale);
        const Lanes rest = g.x[i] - scale * q;
        error += g.w[i] * (rest * rest);
        xq += g.wx[i] * q;
        qq += g.w[i] * (q * q);
    }
    const int best = lane_of_greatest(0 - error);
    return {static_cast<int>(pick(level, best)), pick(error, best), pick(xq, best), pick(qq, best)};
}

template <typename Codes, int N>
void write_codes(const float* x, float scale, float offset, uint8_t* codes) {
    const float inverse_scale = inverse(scale);
    for (int i = 0; i < N; ++i) codes[i] = Codes::number((x[i] - offset) * inverse_scale);
}

// --- x ~ scale * code + offset ---------------------------------------------------------------------------------------

struct Line {
    float scale = 0, offset = 0;
};

// The line of the least weighted square error for codes 0..High; with `below` the offset may not be positive.
// Starts: the range of the weights, cut at its ends by up to `cut_max` of its width, spread over the codes.
template <int High, int N>
Line fit_line(const Group<N>& g, bool below, float cut_max, int starts, int steps) {
    const float bottom = below && g.least > 0 ? 0 : g.least;
    const float range = g.greatest - bottom;
    Lanes best_gain = 0, best_scale = 0, best_offset = 0;
    const float cut_step = cut_max / static_cast<float>(starts > 1 ? starts - 1 : 1);
    for (int start = 0; start < starts; ++start) {
        // Lanes of one start differ in which end is cut.
        const Lanes share = Lanes(0, 0.25f, 0.5f, 0.75f, 1, -0.25f, 0.5f, 1);
        const Lanes cut = Lanes(1, 1, 1, 1, 1, 1, 2, 2) * (cut_step * static_cast<float>(start) * range);
        Lanes offset = bottom + cut * share;
        Lanes inverse_scale = static_cast<float>(High) / (range - cut);
        for (int iteration = 0; iteration < steps; ++iteration) {
            Lanes q1 = 0, qq = 0, xq = 0;
            for (int i = 0; i < N; ++i) {
                const Lanes q = Integers<0, High>::nearest((g.x[i] - offset) * inverse_scale);
                const Lanes wq = g.w[i] * q;
                q1 += wq;
                qq += wq * q;
                xq += g.x[i] * wq;
            }
            const Lanes determinant = g.sum_w * qq - q1 * q1;
            Lanes scale = (g.sum_w * xq - g.sum_wx * q1) / determinant;
            scale = select(determinant > 0, scale, 0);  // all codes alike: no slope to be had
            offset = (g.sum_wx - scale * q1) / g.sum_w;
            if (below) {
                const Mask above = offset > 0;
                scale = select(above, select(qq > 0, xq / qq, 0), scale);
                offset = select(above, 0, offset);
            }
            const Lanes gain = scale * xq + offset * g.sum_wx;  // the error is sum(w x^2) - gain
            const Mask better = gain > best_gain;
            best_gain = select(better, gain, best_gain);
            best_scale = select(better, scale, best_scale);
            best_offset = select(better, offset, best_offset);
            inverse_scale = 1 / scale;
        }
    }
    const int best = lane_of_greatest(best_gain);
    return {pick(best_scale, best), pick(best_offset, best)};
}

struct LinePick {
    int scale = 0, min = 0;                   // levels: x ~ (d * scale) * q - dmin * min
    float error = 0, q1 = 0, qq = 0, xq = 0;  // of that pick
};

// The pair of levels in [0, level_max] that fits best, near the line `wanted`. Tried: four levels of each.
template <int High, int N>
LinePick fit_levels(const Group<N>& g, float d, float dmin, Line wanted, int level_max) {
    const float top = static_cast<float>(level_max);
    const auto floor_of = [&](float value, float unit) {
        const float level = value * inverse(unit);
        return __builtin_floorf(level > 0 ? (level < top ? level : top) : 0);
    };
    const float scale_at = floor_of(wanted.scale, d), min_at = floor_of(-wanted.offset, dmin);
    LinePick best;
    for (int half = 0; half < 2; ++half) {
        const Lanes s = at_least(at_most(Lanes(-1, -1, -1, -1, 0, 0, 0, 0) + (scale_at + static_cast<float>(2 * half)), top), 0);
        const Lanes m = at_least(at_most(Lanes(-1, 0, 1, 2, -1, 0, 1, 2) + min_at, top), 0);
        const Lanes scale = s * d, low = m * dmin;
        const Lanes inverse_scale = select(scale > 0, 1 / scale, 0);
        Lanes error = 0, q1 = 0, qq = 0, xq = 0;
        for (int i = 0; i < N; ++i) {
            const Lanes lifted = g.x[i] + low;
            const Lanes q = Integers<0, High>::nearest(lifted * inverse_scale);
            const Lanes rest = lifted - scale * q, wq = g.w[i] * q;
            error += g.w[i] * (rest * rest);
            q1 += wq;
            qq += wq * q;
            xq += g.x[i] * wq;
        }
        const int lane = lane_of_greatest(0 - error);
        if (half == 0 || pick(error, lane) < best.error)
            best = {static_cast<int>(pick(s, lane)), static_cast<int>(pick(m, lane)), pick(error, lane), pick(q1, lane), pick(qq, lane), pick(xq, lane)};
    }
    return best;
}
