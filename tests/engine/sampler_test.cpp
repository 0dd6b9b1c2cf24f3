// The sampler against a plain implementation in double precision with full sorts, and its draws against their
// distribution.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "engine/philox.h"

using namespace engine;

namespace {

bool verify() { return std::getenv("HEARTH_VERIFY") != nullptr; }

struct Case {
    std::vector<float> logits;
    SamplingParams params;
    std::vector<TokenId> prompt, generated;
    std::vector<TokenId> banned;
};

TokenCounts counts_of(const Case& c) {
    TokenCounts counts(c.prompt.size() + c.generated.size(), c.params.repetition_last_n);
    std::vector<TokenId> history;
    for (const TokenId t : c.prompt) {
        history.push_back(t);
        counts.add(history, false);
    }
    for (const TokenId t : c.generated) {
        history.push_back(t);
        counts.add(history, true);
    }
    return counts;
}

struct Reference {
    std::map<TokenId, double> probability;
    bool near_a_cut = false;  // a threshold lies within rounding of a cumulative sum or a tie of typicality
};

// The chain as sampler.h states it.
Reference reference(const Case& c) {
    const SamplingParams& p = c.params;
    std::vector<double> l(c.logits.begin(), c.logits.end());
    for (const auto& [id, bias] : p.logit_bias) l[static_cast<size_t>(id)] += bias <= -100.0f ? -INFINITY : static_cast<double>(bias);
    std::vector<TokenId> history = c.prompt;
    history.insert(history.end(), c.generated.begin(), c.generated.end());
    const size_t window = p.repetition_last_n < 0 ? history.size() : std::min(history.size(), static_cast<size_t>(p.repetition_last_n));
    const std::set<TokenId> recent(history.end() - static_cast<ptrdiff_t>(window), history.end());
    for (const TokenId t : recent) {
        double& x = l[static_cast<size_t>(t)];
        x = x > 0 ? x / static_cast<double>(p.repetition_penalty) : x * static_cast<double>(p.repetition_penalty);
    }
    for (const TokenId t : std::set<TokenId>(c.generated.begin(), c.generated.end())) {
        l[static_cast<size_t>(t)] -= static_cast<double>(std::ranges::count(c.generated, t)) * static_cast<double>(p.frequency_penalty) +
                                     static_cast<double>(p.presence_penalty);
    }
    for (const TokenId t : c.banned) l[static_cast<size_t>(t)] = -INFINITY;

    Reference out;
    std::vector<TokenId> ids;
    for (size_t i = 0; i < l.size(); ++i) {
        if (l[i] > -INFINITY) ids.push_back(static_cast<TokenId>(i));
    }
    const auto logit = [&](TokenId t) { return l[static_cast<size_t>(t)]; };
    const auto by_logit = [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; };
    std::ranges::sort(ids, by_logit);
    if (ids.empty()) return out;
    if (p.temperature == 0.0f) {
        out.probability[ids[0]] = 1.0;
        return out;
    }
    const auto softmax = [&](double temperature) {
        std::vector<double> q;
        double max = -INFINITY, sum = 0;
        for (const TokenId t : ids) max = std::max(max, logit(t));
        for (const TokenId t : ids) q.push_back(std::exp((logit(t) - max) / temperature));
        for (const double x : q) sum += x;
        for (double& x : q) x /= sum;
        return q;
    };
    const auto cut = [&](const std::vector<double>& q, double target) {
        double sum = 0;
        size_t n = 0;
        while (n < q.size() && sum < target) sum += q[n++];
        out.near_a_cut |= std::abs(sum - target) < 1e-6 || (n > 0 && std::abs(sum - q[n - 1] - target) < 1e-6);
        ids.resize(n);
    };
    if (p.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(p.top_k)));
    if (p.typical_p < 1.0f) {
        std::vector<double> q = softmax(1.0);
        double entropy = 0;
        for (const double x : q) entropy -= x > 0 ? x * std::log(x) : 0.0;
        std::vector<size_t> order(ids.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const auto distance = [&](size_t i) { return std::abs(-std::log(q[i]) - entropy); };
        std::ranges::sort(order, [&](size_t a, size_t b) { return distance(a) < distance(b); });
        std::vector<TokenId> sorted_ids;
        std::vector<double> sorted_q;
        for (const size_t i : order) {
            sorted_ids.push_back(ids[i]);
            sorted_q.push_back(q[i]);
        }
        const std::vector<TokenId> all = ids = sorted_ids;
        cut(sorted_q, static_cast<double>(p.typical_p));
        if (ids.size() < all.size()) out.near_a_cut |= std::abs(distance(order[ids.size() - 1]) - distance(order[ids.size()])) < 1e-5;
        std::ranges::sort(ids, by_logit);
    }
    if (p.top_p < 1.0f) cut(softmax(1.0), static_cast<double>(p.top_p));
    if (p.min_p > 0.0f) {
        const std::vector<double> q = softmax(1.0);
        std::vector<TokenId> kept;
        for (size_t i = 0; i < ids.size(); ++i) {
            const double ratio = q[i] / q[0] / static_cast<double>(p.min_p);
            out.near_a_cut |= std::abs(ratio - 1.0) < 1e-5;
            if (ratio >= 1.0) kept.push_back(ids[i]);
        }
        ids = kept;
    }
    const std::vector<double> q = softmax(static_cast<double>(p.temperature));
    for (size_t i = 0; i < ids.size(); ++i) out.probability[ids[i]] = q[i];
    return out;
}

std::vector<std::pair<TokenId, double>> distribution(Sampler& sampler, const Case& c) {
    const TokenCounts counts = counts_of(c);
    SampleInput in;
    in.logits = c.logits;
    in.params = &c.params;
    in.counts = &counts;
    in.banned = c.banned;
    return sampler.distribution(in);
}

TokenId draw(Sampler& sampler, const Case& c, uint32_t position = 0, uint32_t choice = 0) {
    const TokenCounts counts = counts_of(c);
    SampleInput in;
    in.logits = c.logits;
    in.params = &c.params;
    in.counts = &counts;
    in.banned = c.banned;
    in.position = position;
    in.choice = choice;
    return sampler.sample(in);
}

// Upper tail of chi-square by Wilson and Hilferty; good to a few per cent at 1e-4.
double chi_square_p(double x, double degrees) {
    const double z = (std::cbrt(x / degrees) - (1 - 2 / (9 * degrees))) / std::sqrt(2 / (9 * degrees));
    return 0.5 * std::erfc(z / std::sqrt(2.0));
}

std::vector<float> random_logits(std::mt19937_64& random, size_t n, double spread) {
    std::normal_distribution<double> normal(0.0, spread);
    std::vector<float> l(n);
    for (float& x : l) x = static_cast<float>(normal(random));
    return l;
}

}  // namespace

// Random123's kat_vectors, rounds 10.
TEST(Philox, KnownAnswers) {
    EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
              (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, TheDrawIsTheFirstTwoWordsAsAFraction) {
    EXPECT_EQ(uniform_draw(0, 0, 0), static_cast<double>(0x6627e8d5e169c58dull >> 11) / 9'007'199'254'740'992.0);
    EXPECT_LT(uniform_draw(~0ull, ~0u, ~0u), 1.0);
    EXPECT_NE(uniform_draw(1, 0, 0), uniform_draw(1, 1, 0));
    EXPECT_NE(uniform_draw(1, 0, 0), uniform_draw(1, 0, 1));
    EXPECT_NE(uniform_draw(1, 0, 0), uniform_draw(uint64_t{1} << 32, 0, 0));
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualOnesTheFirst) {
    Sampler sampler(40);
    Case c;
    c.params.temperature = 0.0f;
    for (size_t best = 0; best < 40; ++best) {
        c.logits.assign(40, -1.0f);
        c.logits[best] = 2.0f;
        c.logits[39] = 2.0f;
        EXPECT_EQ(draw(sampler, c), static_cast<TokenId>(best));
    }
    c.logits.assign(40, -3.0f);
    EXPECT_EQ(draw(sampler, c), 0);
}

TEST(Sampler, ARowThatIsNoDistributionIsAnError) {
    Sampler sampler(37);
    for (const float temperature : {0.0f, 1.0f}) {
        for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
            for (const size_t at : {size_t{0}, size_t{17}, size_t{36}}) {
                Case c;
                c.params.temperature = temperature;
                c.logits.assign(37, 1.0f);
                c.logits[at] = bad;
                EXPECT_EQ(draw(sampler, c), -1);
            }
        }
        Case c;
        c.params.temperature = temperature;
        c.logits.assign(37, 0.0f);
        EXPECT_EQ(draw(sampler, c), -1);
        c.logits.assign(37, -0.0f);
        EXPECT_EQ(draw(sampler, c), -1);
        c.logits[5] = 1e-30f;  // not all zero
        EXPECT_GE(draw(sampler, c), 0);
    }
}

TEST(Sampler, BansAreAbsolute) {
    Sampler sampler(8);
    Case c;
    c.logits = {9, 8, 7, 6, 5, 4, 3, 2};
    c.params.temperature = 0.0f;
    c.banned = {0};
    c.params.logit_bias = {{1, -100.0f}};
    EXPECT_EQ(draw(sampler, c), 2);
    c.params.logit_bias = {{1, -100.0f}, {7, 100.0f}};
    EXPECT_EQ(draw(sampler, c), 7);
    c.params.temperature = 100.0f;
    for (uint32_t i = 0; i < 500; ++i) {
        const TokenId t = draw(sampler, c, i);
        EXPECT_TRUE(t != 0 && t != 1);
    }
    for (TokenId t = 0; t < 8; ++t) c.banned.push_back(t);
    EXPECT_EQ(draw(sampler, c), -1);
}

TEST(Sampler, PenaltiesByHand) {
    Sampler sampler(5);
    Case c;
    c.logits = {4.0f, 3.9f, -1.0f, 0.5f, 0.0f};
    c.params.temperature = 0.0f;
    c.prompt = {0};
    c.params.repetition_penalty = 2.0f;  // 4 / 2 = 2 < 3.9
    EXPECT_EQ(draw(sampler, c), 1);
    c.params.repetition_last_n = 0;  // looks back over nothing
    EXPECT_EQ(draw(sampler, c), 0);
    c.params.repetition_last_n = 1;
    EXPECT_EQ(draw(sampler, c), 1);
    c.generated = {4};  // token 0 has left the window of one
    EXPECT_EQ(draw(sampler, c), 0);
    c.params = {};
    c.params.temperature = 0.0f;
    c.params.presence_penalty = 0.2f;  // over generated tokens only: the prompt's 0 is not counted
    EXPECT_EQ(draw(sampler, c), 0);
    c.generated = {0};
    EXPECT_EQ(draw(sampler, c), 1);
    c.params.presence_penalty = 0.0f;
    c.params.frequency_penalty = 0.04f;
    c.generated = {0, 0};  // 4 - 0.08 = 3.92
    EXPECT_EQ(draw(sampler, c), 0);
    c.generated = {0, 0, 0};  // 4 - 0.12 = 3.88
    EXPECT_EQ(draw(sampler, c), 1);
}

TEST(Sampler, EqualLogitsAtACutGoToTheLowerId) {
    Sampler sampler(100);
    Case c;
    c.logits.assign(100, 1.0f);
    c.params.top_k = 3;
    std::set<TokenId> seen;
    for (const auto& [id, q] : distribution(sampler, c)) {
        seen.insert(id);
        EXPECT_NEAR(q, 1.0 / 3.0, 1e-7);
    }
    EXPECT_EQ(seen, (std::set<TokenId>{0, 1, 2}));
    c.params.top_k = 0;
    c.params.top_p = 0.045f;  // 4.5 tokens' worth
    seen.clear();
    for (const auto& [id, q] : distribution(sampler, c)) seen.insert(id);
    EXPECT_EQ(seen, (std::set<TokenId>{0, 1, 2, 3, 4}));
}

TEST(Sampler, TheDistributionIsThatOfThePlainImplementation) {
    const int cases = verify() ? 40'000 : 3'000;
    std::mt19937_64 random(11);
    const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
    const auto real = [&](double low, double high) { return static_cast<float>(low + (high - low) * std::generate_canonical<double, 53>(random)); };
    int n_near = 0, n_truncated = 0, n_wide = 0;
    std::map<size_t, std::unique_ptr<Sampler>> samplers;
    for (int i = 0; i < cases; ++i) {
        static constexpr size_t sizes[] = {2, 17, 300, 1'000, 1'003, 5'000};
        const size_t n = sizes[pick(pick(4) == 0 ? 6 : 5)];
        Case c;
        c.logits = random_logits(random, n, pick(3) == 0 ? 0.3 : pick(2) == 0 ? 2.0 : 8.0);
        if (pick(5) == 0) {
            for (float& x : c.logits) x = std::round(x);  // many ties
            c.logits[0] += 0.5f;
        }
        SamplingParams& p = c.params;
        p.temperature = pick(8) == 0 ? 0.0f : real(0.05, 2.5);
        if (pick(2) == 0) p.top_k = 1 + pick(pick(2) == 0 ? 50 : 2'000);
        if (pick(2) == 0) p.top_p = real(0.01, 1.0);
        if (pick(3) == 0) p.min_p = real(0.0, 0.3);
        if (pick(3) == 0) p.typical_p = real(0.05, 1.0);
        if (pick(3) == 0) p.repetition_penalty = real(0.5, 2.0);
        if (pick(3) == 0) p.presence_penalty = real(-2.0, 2.0);
        if (pick(3) == 0) p.frequency_penalty = real(-2.0, 2.0);
        if (pick(3) == 0) p.repetition_last_n = pick(40);
        for (int k = pick(4); k > 0; --k) p.logit_bias.emplace_back(pick(static_cast<int>(n)), pick(3) == 0 ? -100.0f : real(-5, 5));
        std::ranges::sort(p.logit_bias);
        p.logit_bias.erase(std::unique(p.logit_bias.begin(), p.logit_bias.end(), [](auto& a, auto& b) { return a.first == b.first; }), p.logit_bias.end());
        for (int k = pick(30); k > 0; --k) c.prompt.push_back(pick(static_cast<int>(std::min<size_t>(n, 40))));
        for (int k = pick(30); k > 0; --k) c.generated.push_back(pick(static_cast<int>(std::min<size_t>(n, 40))));
        if (pick(4) == 0 && n > 2) c.banned = {pick(static_cast<int>(n))};

        const Reference want = reference(c);
        if (want.near_a_cut) {
            ++n_near;
            continue;
        }
        if (!samplers[n]) samplers[n] = std::make_unique<Sampler>(static_cast<uint32_t>(n));
        const auto got = distribution(*samplers[n], c);
        std::map<TokenId, double> left = want.probability;
        for (const auto& [id, q] : got) {
            ASSERT_TRUE(left.contains(id)) << "case " << i << " keeps token " << id;
            ASSERT_NEAR(q, left[id], 2e-6 + 2e-5 * left[id]) << "case " << i << " token " << id;
            left.erase(id);
        }
        for (const auto& [id, q] : left) ASSERT_LT(q, 1e-30) << "case " << i << " lacks token " << id;
        n_truncated += want.probability.size() < n / 2;
        n_wide += want.probability.size() > 500;
    }
    EXPECT_LT(n_near, cases / 5);
    EXPECT_GT(n_truncated, cases / 10);
    EXPECT_GT(n_wide, cases / 50);
}

TEST(Sampler, DrawsFollowTheirDistribution) {
    const uint32_t draws = verify() ? 1'000'000 : 100'000;
    std::mt19937_64 random(3);
    Sampler sampler(200);
    for (int kind = 0; kind < 6; ++kind) {
        Case c;
        c.logits = random_logits(random, 200, 1.5);
        c.params.seed = random();
        if (kind == 1) c.params.top_k = 20;
        if (kind == 2) c.params.top_p = 0.8f;
        if (kind == 3) c.params.min_p = 0.05f;
        if (kind == 4) c.params.typical_p = 0.7f;
        if (kind == 5) c.params.temperature = 2.0f;
        std::map<TokenId, uint32_t> count;
        for (uint32_t i = 0; i < draws; ++i) count[draw(sampler, c, i)] += 1;
        double chi = 0, rest_want = 0, rest_got = 0;
        int bins = -1;
        for (const auto& [id, q] : reference(c).probability) {
            const double want = q * draws, got = count[id];
            count.erase(id);
            if (want < 8) {
                rest_want += want;
                rest_got += got;
                continue;
            }
            chi += (got - want) * (got - want) / want;
            ++bins;
        }
        if (rest_want >= 8) {
            chi += (rest_got - rest_want) * (rest_got - rest_want) / rest_want;
            ++bins;
        }
        for (const auto& [id, n] : count) EXPECT_EQ(n, 0u) << "token " << id << " is outside the distribution";
        EXPECT_GT(chi_square_p(chi, bins), 1e-4) << "kind " << kind << " chi-square " << chi << " with " << bins << " degrees";
    }
}

// Neighbouring positions, choices and seeds are independent draws.
TEST(Sampler, DrawsOfNeighboursAreIndependent) {
    constexpr uint32_t side = 8, draws = 64'000;
    for (int kind = 0; kind < 3; ++kind) {
        std::vector<uint32_t> count(side * side);
        for (uint32_t i = 0; i < draws; ++i) {
            const double a = uniform_draw(5, 0, i);
            const double b = kind == 0 ? uniform_draw(5, 0, i + 1) : kind == 1 ? uniform_draw(5, 1, i) : uniform_draw(6, 0, i);
            count[static_cast<size_t>(a * side) * side + static_cast<size_t>(b * side)] += 1;
        }
        double chi = 0;
        const double want = double{draws} / (side * side);
        for (const uint32_t n : count) chi += (n - want) * (n - want) / want;
        EXPECT_GT(chi_square_p(chi, side * side - 1), 1e-4) << kind;
    }
}

TEST(Sampler, ADrawDependsOnSeedChoiceAndPositionOnly) {
    std::mt19937_64 random(9);
    Sampler one(1'000), other(1'000);
    Case c;
    c.logits = random_logits(random, 1'000, 2.0);
    c.params.top_p = 0.95f;
    c.params.seed = 77;
    std::vector<TokenId> forward, backward;
    for (uint32_t i = 0; i < 100; ++i) forward.push_back(draw(one, c, i, i % 3));
    for (uint32_t i = 100; i-- > 0;) {
        Case noise = c;
        noise.params.seed = i;
        noise.params.top_k = 3;
        draw(other, noise, i);  // another sequence in between
        backward.push_back(draw(other, c, i, i % 3));
    }
    std::ranges::reverse(backward);
    EXPECT_EQ(forward, backward);
}

TEST(Sampler, LogprobsAreTheLogSoftmaxOfTheRawLogits) {
    std::mt19937_64 random(5);
    for (const uint32_t n : {3u, 50u, 49'152u}) {
        Sampler sampler(n);
        for (const double spread : {0.5, 4.0, 30.0}) {
            const std::vector<float> logits = random_logits(random, n, spread);
            double max = -INFINITY, z = 0;
            for (const float x : logits) max = std::max(max, static_cast<double>(x));
            for (const float x : logits) z += std::exp(static_cast<double>(x) - max);
            std::vector<TokenId> order(n);
            std::iota(order.begin(), order.end(), 0);
            std::ranges::stable_sort(order, [&](TokenId a, TokenId b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
            std::array<TokenLogprob, limits::top_logprobs> top{};
            const auto token = static_cast<TokenId>(random() % n);
            const float got = sampler.logprobs(logits, token, top);
            EXPECT_NEAR(static_cast<double>(got), static_cast<double>(logits[static_cast<size_t>(token)]) - max - std::log(z), 2e-5);
            for (size_t i = 0; i < top.size(); ++i) {
                if (i >= n) {
                    EXPECT_EQ(top[i].token, -1);
                    continue;
                }
                EXPECT_EQ(top[i].token, order[i]);
                EXPECT_NEAR(static_cast<double>(top[i].logprob), static_cast<double>(logits[static_cast<size_t>(order[i])]) - max - std::log(z), 2e-5);
            }
        }
    }
}

// A hostile combination must give a token of the vocabulary, or an error, and never hang or leave the array.
TEST(Sampler, ExtremeSettingsGiveAToken) {
    std::mt19937_64 random(13);
    Sampler sampler(64);
    for (const float scale : {1e-38f, 1.0f, 1e30f, 3e38f}) {
        for (const float temperature : {1e-45f, 1e-6f, 1.0f, 100.0f}) {
            for (const float penalty : {1e-30f, 1.0f, 10.0f}) {
                for (const float p : {1e-30f, 0.5f, 0.99999994f, 1.0f}) {
                    Case c;
                    for (int i = 0; i < 64; ++i) c.logits.push_back(scale * (static_cast<float>(random() % 2'001) / 1'000.0f - 1.0f));
                    c.params.temperature = temperature;
                    c.params.repetition_penalty = penalty;
                    c.params.top_p = p;
                    c.params.typical_p = p;
                    c.prompt = {1, 2, 3};
                    const TokenId t = draw(sampler, c);
                    EXPECT_TRUE(t >= 0 && t < 64);
                    double sum = 0;
                    for (const auto& [id, q] : distribution(sampler, c)) {
                        EXPECT_TRUE(std::isfinite(q));
                        sum += q;
                    }
                    EXPECT_NEAR(sum, 1.0, 1e-6);
                }
            }
        }
    }
}
