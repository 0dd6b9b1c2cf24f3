// Attention over paged KV, written once over the vector vocabulary; included as elementwise.h is, after it.
//
// Order, fixed by absolute positions alone: a block of 64 tokens starts fresh. Score of a token: dims ascending in one
// fused chain, times the scale. Block maximum; weights exp(score - maximum), masked lanes exactly 0; their sum by lanes,
// then by the tree of sum_lanes; output: tokens ascending in one fused chain per dim. Blocks merge left to right:
//   M' = max(M, m), a = exp(M - M'), b = exp(m - M'), S = fma(S, a, s b), A = fma(A, a, acc b); result A * (1 / S).
// A row reads only the tokens it sees, [0, own position] or its window's: what lies beside them in the block is never
// multiplied. A score is soft-capped before the maximum is taken.

template <typename Element>
static inline V load_kv(const Element* p);
template <>
inline V load_kv<uint16_t>(const uint16_t* p) { return load_half(p); }
template <>
inline V load_kv<float>(const float* p) { return load(p); }

// scores (N, 64) of N queries against panels [0, n_panels) of 16 tokens.
template <uint32_t N, typename Element>
static inline void score_block(const float* const* q, const Element* k, uint32_t head_dim, uint32_t n_panels, float scale, float* scores) {
    uint32_t p = 0;
    for (; p + kScorePanels <= n_panels; p += kScorePanels) {
        V acc[N][kScorePanels];
        for (uint32_t n = 0; n < N; ++n)
            for (uint32_t j = 0; j < kScorePanels; ++j) acc[n][j] = set1(0.0f);
        const Element* at = k + size_t{p} * head_dim * 16;
        for (uint32_t d = 0; d < head_dim; ++d) {
            V keys[kScorePanels];
            for (uint32_t j = 0; j < kScorePanels; ++j) keys[j] = load_kv<Element>(at + (size_t{j} * head_dim + d) * 16);
            for (uint32_t n = 0; n < N; ++n) {
                const V value = set1(q[n][d]);
                for (uint32_t j = 0; j < kScorePanels; ++j) acc[n][j] = fma(value, keys[j], acc[n][j]);
            }
        }
        for (uint32_t n = 0; n < N; ++n)
            for (uint32_t j = 0; j < kScorePanels; ++j) store(scores + n * 64 + (p + j) * 16, mul(acc[n][j], set1(scale)));
    }
    for (; p < n_panels; ++p) {
        V acc[N];
        for (uint32_t n = 0; n < N; ++n) acc[n] = set1(0.0f);
        const Element* at = k + size_t{p} * head_dim * 16;
        for (uint32_t d = 0; d < head_dim; ++d) {
            const V keys = load_kv<Element>(at + size_t{d} * 16);
            for (uint32_t n = 0; n < N; ++n) acc[n] = fma(set1(q[n][d]), keys, acc[n]);
        }
        for (uint32_t n = 0; n < N; ++n) store(scores + n * 64 + p * 16, mul(acc[n], set1(scale)));
    }
}

// scores (64) -> weights in place; lanes before `from` and from `valid` on become 0. Returns {maximum, sum}.
struct MaxSum { float max, sum; };
static inline MaxSum softmax_block(float* scores, uint32_t from, uint32_t valid, float cap) {
    const V lowest = set1(-3.4028235e38f);
    const auto within = [&](V v, uint32_t i, V fill) {
        v = keep_first(v, valid > 16 * i ? valid - 16 * i : 0, fill);
        return from > 16 * i ? keep_first(fill, from - 16 * i, v) : v;
    };
    V v[4];
    for (uint32_t i = 0; i < 4; ++i) {
        v[i] = load(scores + 16 * i);
        if (cap > 0) v[i] = soft_cap_lanes(v[i], set1(cap), set1(2.0f / cap));
        v[i] = within(v[i], i, lowest);
    }
    const float max = max_lanes(maximum(maximum(v[0], v[1]), maximum(v[2], v[3])));
    const V shift = set1(max);
    for (uint32_t i = 0; i < 4; ++i) {
        v[i] = within(exp_lanes(sub(v[i], shift)), i, set1(0.0f));
        store(scores + 16 * i, v[i]);
    }
    return {max, sum_lanes(add(add(v[0], v[1]), add(v[2], v[3])))};
}

// acc (N, padded): sum over tokens [first, last) of weight * v, onto what acc holds.
template <uint32_t N, uint32_t D, typename Element>
static inline void weigh_dims(const float* weights, const Element* v, uint32_t padded, uint32_t first, uint32_t last, float* acc) {
    V sums[N][D];
    for (uint32_t n = 0; n < N; ++n)
        for (uint32_t j = 0; j < D; ++j) sums[n][j] = load(acc + size_t{n} * padded + j * 16);
    for (uint32_t t = first; t < last; ++t) {
        V values[D];
        for (uint32_t j = 0; j < D; ++j) values[j] = load_kv<Element>(v + size_t{t} * padded + j * 16);
        for (uint32_t n = 0; n < N; ++n) {
            const V weight = set1(weights[n * 64 + t]);
            for (uint32_t j = 0; j < D; ++j) sums[n][j] = fma(weight, values[j], sums[n][j]);
        }
    }
    for (uint32_t n = 0; n < N; ++n)
        for (uint32_t j = 0; j < D; ++j) store(acc + size_t{n} * padded + j * 16, sums[n][j]);
}

template <uint32_t N, typename Element>
static inline void weigh_block(const float* weights, const Element* v, uint32_t padded, uint32_t first, uint32_t last, float* acc) {
    uint32_t d = 0;
    for (; d + kValueLanes * 16 <= padded; d += kValueLanes * 16) weigh_dims<N, kValueLanes, Element>(weights, v + d, padded, first, last, acc + d);
    for (; d < padded; d += 16) weigh_dims<N, 1, Element>(weights, v + d, padded, first, last, acc + d);
}

// Queries [first, first + N) of the tile: query i is row i / n_group, head i % n_group.
template <uint32_t N, typename Element>
static void attend_block(const AttentionArgs& a, uint32_t first, uint32_t block, float* state, float* work) {
    const uint32_t padded = padded_head_dim(a.head_dim);
    const auto* k = reinterpret_cast<const Element*>(a.kv + size_t{a.block_table[block]} * a.block_bytes);
    const Element* v = k + size_t{64} * a.head_dim;
    float* scores = work;                                    // (N, 64)
    float* acc = work + attention_queries_max * 64;          // (N, padded)
    const float* q[N];
    // Row n sees tokens [from[n], valid[n]) of this block.
    uint32_t from[N], valid[N], valid_min = 64, valid_max = 0, from_max = 0;
    bool first_seen[N];
    for (uint32_t n = 0; n < N; ++n) {
        const uint32_t row = (first + n) / a.n_group, head = (first + n) % a.n_group;
        q[n] = a.q + row * a.q_stride + size_t{head} * a.head_dim;
        const uint32_t length = a.first_position + row + 1;  // tokens that the row sees
        const uint32_t start = block * 64;
        valid[n] = length <= start ? 0 : length - start < 64 ? length - start : 64;
        const uint32_t low = a.window > 0 && length > a.window ? length - a.window : 0;  // the first token that it sees
        from[n] = low > start ? low - start : 0;
        if (from[n] >= valid[n]) from[n] = valid[n] = 0;  // nothing here
        first_seen[n] = low / 64 == block;
        from_max = from[n] > from_max ? from[n] : from_max;
        valid_min = valid[n] < valid_min ? valid[n] : valid_min;
        valid_max = valid[n] > valid_max ? valid[n] : valid_max;
    }
    if (valid_max == 0) return;
    score_block<N, Element>(q, k, a.head_dim, (valid_max + 15) / 16, a.scale, scores);
    MaxSum part[N];
    for (uint32_t n = 0; n < N; ++n) {
        // Panels that were not scored hold old numbers; keep_first masks them.
        if (valid[n] > 0) part[n] = softmax_block(scores + n * 64, from[n], valid[n], a.soft_cap);
        for (uint32_t d = 0; d < padded; d += 16) store(acc + size_t{n} * padded + d, set1(0.0f));
    }
    // Each row's own tokens in ascending order, never another one's: what all see together, the ends one by one.
    if (from_max >= valid_min) from_max = valid_min = 64;
    for (uint32_t n = 0; n < N; ++n) {
        const uint32_t end = valid[n] < from_max ? valid[n] : from_max;
        if (from[n] < end) weigh_block<1, Element>(scores + n * 64, v, padded, from[n], end, acc + size_t{n} * padded);
    }
    if (from_max < valid_min) weigh_block<N, Element>(scores, v, padded, from_max, valid_min, acc);
    for (uint32_t n = 0; n < N; ++n)
        if (valid[n] > valid_min) weigh_block<1, Element>(scores + n * 64, v, padded, valid_min, valid[n], acc + size_t{n} * padded);
    for (uint32_t n = 0; n < N; ++n) {
        if (valid[n] == 0) continue;
        float* s = state + size_t{first + n} * (padded + 2);  // max, sum, A (padded)
        const float* mine = acc + size_t{n} * padded;
        if (first_seen[n]) {
            s[0] = part[n].max;
            s[1] = part[n].sum;
            for (uint32_t d = 0; d < padded; d += 16) store(s + 2 + d, load(mine + d));
            continue;
        }
        const float max = s[0] > part[n].max ? s[0] : part[n].max;
        float factors[16] = {s[0] - max, part[n].max - max};
        store(factors, exp_lanes(load(factors)));
        const float before = factors[0], now = factors[1];
        s[0] = max;
        s[1] = fma1(s[1], before, part[n].sum * now);
        for (uint32_t d = 0; d < padded; d += 16) store(s + 2 + d, fma(load(s + 2 + d), set1(before), mul(load(mine + d), set1(now))));
    }
}

template <typename Element>
static void attention(const AttentionArgs& a) {
    const uint32_t padded = padded_head_dim(a.head_dim), n_queries = a.n_rows * a.n_group;
    float* state = a.scratch;
    float* work = a.scratch + size_t{n_queries} * (padded + 2);
    const uint32_t n_blocks = (a.first_position + a.n_rows + 63) / 64;
    // Row 0 sees the earliest tokens; blocks before them are nobody's.
    const uint32_t first_block = a.window > 0 && a.first_position + 1 > a.window ? (a.first_position + 1 - a.window) / 64 : 0;
    for (uint32_t block = first_block; block < n_blocks; ++block) {
        uint32_t i = 0;
        for (; i + kQueries <= n_queries; i += kQueries) attend_block<kQueries, Element>(a, i, block, state, work);
        switch (n_queries - i) {
            case 1: attend_block<1, Element>(a, i, block, state, work); break;
            case 2: if constexpr (kQueries > 2) attend_block<2, Element>(a, i, block, state, work); break;
            case 3: if constexpr (kQueries > 3) attend_block<3, Element>(a, i, block, state, work); break;
            case 4: if constexpr (kQueries > 4) attend_block<4, Element>(a, i, block, state, work); break;
            case 5: if constexpr (kQueries > 5) attend_block<5, Element>(a, i, block, state, work); break;
            default: break;
        }
    }
    for (uint32_t i = 0; i < n_queries; ++i) {
        const float* s = state + size_t{i} * (padded + 2);
        const V factor = set1(1.0f / s[1]);
        float* out = a.out + (i / a.n_group) * a.out_stride + size_t{i % a.n_group} * a.head_dim;
        uint32_t d = 0;
        for (; d + 16 <= a.head_dim; d += 16) store(out + d, mul(load(s + 2 + d), factor));
        if (d < a.head_dim) store_first(out + d, mul(load(s + 2 + d), factor), a.head_dim - d);
    }
}

static inline void put_kv(uint16_t* p, V v) { store_half(p, v); }
static inline void put_kv(float* p, V v) { store(p, v); }

template <typename Element>
static void store_kv(const StoreKvArgs& a) {
    const uint32_t padded = padded_head_dim(a.head_dim);
    auto* k = reinterpret_cast<Element*>(a.block);
    Element* v = k + size_t{64} * a.head_dim + size_t{a.slot} * padded;
    Element* column = k + size_t{a.slot / 16} * a.head_dim * 16 + a.slot % 16;
    for (uint32_t d = 0; d < a.head_dim; d += 16) {
        const uint32_t n = a.head_dim - d < 16 ? a.head_dim - d : 16;
        Element keys[16];
        put_kv(keys, load_first(a.k + d, n));
        for (uint32_t i = 0; i < n; ++i) column[size_t{d + i} * 16] = keys[i];
        put_kv(v + d, load_first(a.v + d, n));  // dims beyond head_dim are zero
    }
}

static_assert(kQueries <= 6 && kQueries <= attention_queries_max);

static void install_attention(KernelTable& table) {
    table.store_kv[static_cast<size_t>(KvType::f16)] = store_kv<uint16_t>;
    table.store_kv[static_cast<size_t>(KvType::f32)] = store_kv<float>;
    table.attention[static_cast<size_t>(KvType::f16)] = attention<uint16_t>;
    table.attention[static_cast<size_t>(KvType::f32)] = attention<float>;
}
