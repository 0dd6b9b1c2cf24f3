#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "engine/philox.h"

namespace engine {

namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr size_t lanes = 16;  // independent partial results, so that a loop over the vocabulary fills vector registers

// e^x for x <= 0, within 2 ulp; exactly 0 below -87 (and for -infinity). Branch-free, so that the loops below become
// vector code, and the same bits on every machine, which libm does not promise. Cody and Waite's reduction; the
// polynomial is the Taylor series to r^7, whose next term is below 2^-24 for |r| <= ln(2) / 2.
inline float exp_nonpositive(float x) {
    constexpr float lowest = -87.0f;
    constexpr float round_magic = 12'582'912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float c = x > lowest ? x : lowest;
    const float shifted = c * 1.44269504f + round_magic;
    const float n = shifted - round_magic;
    const float r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    float y = 1.0f / 5040.0f;
    y = y * r + 1.0f / 720.0f;
    y = y * r + 1.0f / 120.0f;
    y = y * r + 1.0f / 24.0f;
    y = y * r + 1.0f / 6.0f;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    const int32_t scale = (std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(round_magic) + 127) << 23;
    // Among floats <= 0 (sign bit set by the OR), the more negative has the larger pattern.
    const int32_t keep = (std::bit_cast<int32_t>(x) | std::numeric_limits<int32_t>::min()) <= std::bit_cast<int32_t>(lowest) ? -1 : 0;
    return std::bit_cast<float>(std::bit_cast<int32_t>(y * std::bit_cast<float>(scale)) & keep);
}

// Always added in the same order: 16 partial sums, then those from first to last.
template <typename Term>
inline double sum_of(size_t n, Term term) {
    double partial[lanes] = {};
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (size_t j = 0; j < lanes; ++j) partial[j] += static_cast<double>(term(i + j));
    }
    for (size_t j = 0; i < n; ++i, ++j) partial[j] += static_cast<double>(term(i));
    double sum = 0.0;
    for (const double p : partial) sum += p;
    return sum;
}

float largest(std::span<const float> values) {
    float partial[lanes];
    std::fill_n(partial, lanes, minus_infinity);
    size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes) {
        for (size_t j = 0; j < lanes; ++j) partial[j] = values[i + j] > partial[j] ? values[i + j] : partial[j];
    }
    for (size_t j = 0; i < values.size(); ++i, ++j) partial[j] = values[i] > partial[j] ? values[i] : partial[j];
    return *std::max_element(partial, partial + lanes);
}

// Orders the candidates as `less` says until their weights add up to the target, and gives how many that took. Sorts
// piece by piece: a peaked distribution needs the first few dozen of tens of thousands.
template <typename Candidates, typename Less, typename Weight>
size_t order_until(Candidates& candidates, Less less, Weight weight, double target, bool ordered) {
    double sum = 0.0;
    size_t piece = 64;
    for (size_t done = 0; done < candidates.size(); piece *= 4) {
        const size_t end = std::min(candidates.size(), done + piece);
        if (!ordered) {
            const auto first = candidates.begin() + static_cast<ptrdiff_t>(done), middle = candidates.begin() + static_cast<ptrdiff_t>(end);
            if (middle != candidates.end()) std::nth_element(first, middle, candidates.end(), less);
            std::sort(first, middle, less);
        }
        for (; done < end; ++done) {
            sum += weight(candidates[done]);
            if (sum >= target) return done + 1;
        }
    }
    return candidates.size();
}

}  // namespace

Sampler::Sampler(uint32_t n_vocab) : n_vocab_(n_vocab), scratch_(n_vocab), weights_(n_vocab) {
    CHECK(n_vocab > 0);
    candidates_.reserve(n_vocab);
}

Sampler::Scan Sampler::scan(std::span<const float> logits) {
    // The bit pattern without its sign orders magnitudes; infinity and NaN are at and above 0x7f800000.
    uint32_t magnitude[lanes] = {};
    size_t i = 0;
    for (; i + lanes <= logits.size(); i += lanes) {
        for (size_t j = 0; j < lanes; ++j) {
            const uint32_t bits = std::bit_cast<uint32_t>(logits[i + j]) & 0x7fff'ffff;
            magnitude[j] = bits > magnitude[j] ? bits : magnitude[j];
        }
    }
    for (size_t j = 0; i < logits.size(); ++i, ++j) magnitude[j] = std::max(magnitude[j], std::bit_cast<uint32_t>(logits[i]) & 0x7fff'ffff);
    const uint32_t most = *std::max_element(magnitude, magnitude + lanes);
    return {largest(logits), most > 0 && most < 0x7f80'0000};
}

TokenId Sampler::index_of(std::span<const float> logits, float value) {
    return static_cast<TokenId>(std::find(logits.begin(), logits.end(), value) - logits.begin());
}

std::span<const float> Sampler::adjusted(const SampleInput& in) {
    const SamplingParams& p = *in.params;
    const bool repeats = in.counts != nullptr && in.counts->active() &&
                         (p.repetition_penalty != 1.0f || p.presence_penalty != 0.0f || p.frequency_penalty != 0.0f);
    if (!repeats && p.logit_bias.empty() && in.banned.empty()) return in.logits;
    std::ranges::copy(in.logits, scratch_.begin());
    for (const auto& [token, bias] : p.logit_bias) {
        float& logit = scratch_[static_cast<size_t>(token)];
        logit = bias <= -100.0f ? minus_infinity : logit + bias;
    }
    if (repeats) {
        for (const TokenCounts::Entry& seen : in.counts->entries()) {
            if (seen.token < 0) continue;
            float& logit = scratch_[static_cast<size_t>(seen.token)];
            if (logit == minus_infinity) continue;
            if (seen.in_window > 0) logit = logit > 0.0f ? logit / p.repetition_penalty : logit * p.repetition_penalty;
            if (seen.generated > 0) logit -= static_cast<float>(seen.generated) * p.frequency_penalty + p.presence_penalty;
            // A small penalty under a huge logit may leave the range of a float.
            logit = std::clamp(logit, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max());
        }
    }
    for (const TokenId token : in.banned) {
        if (static_cast<uint32_t>(token) < n_vocab_) scratch_[static_cast<size_t>(token)] = minus_infinity;
    }
    return scratch_;
}

void Sampler::keep_top_k(std::span<const float> logits, size_t k) {
    // A heap of the k best with the worst on top: nearly every logit fails the first comparison.
    candidates_.clear();
    if (k > 512) {
        all_candidates(logits);
        if (k < candidates_.size()) {
            std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<ptrdiff_t>(k), candidates_.end(), better);
            candidates_.resize(k);
        }
        std::sort(candidates_.begin(), candidates_.end(), better);
    } else {
        float worst = minus_infinity;
        for (size_t i = 0; i < logits.size(); ++i) {
            if (!(logits[i] > worst)) continue;  // a later equal logit has the higher id: it loses the tie
            candidates_.push_back({logits[i], static_cast<TokenId>(i)});
            std::push_heap(candidates_.begin(), candidates_.end(), better);
            if (candidates_.size() > k) {
                std::pop_heap(candidates_.begin(), candidates_.end(), better);
                candidates_.pop_back();
            }
            if (candidates_.size() == k) worst = candidates_.front().logit;
        }
        std::sort_heap(candidates_.begin(), candidates_.end(), better);
    }
    sorted_ = true;
}

void Sampler::all_candidates(std::span<const float> logits) {
    candidates_.clear();
    for (size_t i = 0; i < logits.size(); ++i) {
        if (logits[i] != minus_infinity) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
    }
    sorted_ = false;
}

void Sampler::keep_typical(double p) {
    float max = minus_infinity;
    for (const Candidate& c : candidates_) max = std::max(max, c.logit);
    const auto weight = [max](const Candidate& c) { return static_cast<double>(exp_nonpositive(c.logit - max)); };
    const double z = sum_of(candidates_.size(), [&](size_t i) { return weight(candidates_[i]); });
    const double mean = sum_of(candidates_.size(), [&](size_t i) { return weight(candidates_[i]) * (candidates_[i].logit - max); }) / z;
    // Entropy = log z - mean, surprise of a token = log z - (logit - max): log z cancels in their difference.
    const auto distance = [=](const Candidate& c) { return std::abs(mean - static_cast<double>(c.logit - max)); };
    const auto less = [&](const Candidate& a, const Candidate& b) {
        const double da = distance(a), db = distance(b);
        return da < db || (da == db && a.id < b.id);
    };
    candidates_.resize(order_until(candidates_, less, weight, p * z, false));
    sorted_ = false;
}

void Sampler::keep_top_p(std::span<const float> logits, float max, double p) {
    const auto weight = [max](const Candidate& c) { return static_cast<double>(exp_nonpositive(c.logit - max)); };
    double z;
    if (candidates_.empty()) {
        for (size_t i = 0; i < logits.size(); ++i) weights_[i] = exp_nonpositive(logits[i] - max);
        z = sum_of(logits.size(), [&](size_t i) { return weights_[i]; });
        // All tokens below a share of (1 - p) / n_vocab together have less than 1 - p, so none of them is needed to
        // reach p. Half of it, so that rounding can't matter.
        const auto needless = static_cast<float>(0.5 * (1.0 - p) * z / static_cast<double>(n_vocab_));
        for (size_t i = 0; i < logits.size(); ++i) {
            if (weights_[i] >= needless && weights_[i] > 0.0f) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
        }
    } else {
        z = sum_of(candidates_.size(), [&](size_t i) { return weight(candidates_[i]); });
    }
    candidates_.resize(order_until(candidates_, better, weight, p * z, sorted_));
    sorted_ = true;
}

void Sampler::keep_min_p(std::span<const float> logits, float max, double p) {
    const double cutoff = static_cast<double>(max) + std::log(p);
    if (candidates_.empty()) {
        for (size_t i = 0; i < logits.size(); ++i) {
            if (static_cast<double>(logits[i]) >= cutoff) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
        }
    } else {
        std::erase_if(candidates_, [cutoff](const Candidate& c) { return static_cast<double>(c.logit) < cutoff; });
    }
}

Sampler::Outcome Sampler::prepare(const SampleInput& in, TokenId& token) {
    CHECK_EQ(in.logits.size(), size_t{n_vocab_});
    const SamplingParams& p = *in.params;
    const Scan raw = scan(in.logits);
    if (!raw.ok) return Outcome::error;
    const std::span<const float> logits = adjusted(in);
    float max = logits.data() == in.logits.data() ? raw.max : largest(logits);
    if (max == minus_infinity) return Outcome::error;
    if (p.temperature == 0.0f || p.top_k == 1) {
        token = index_of(logits, max);
        return Outcome::token;
    }
    candidates_.clear();  // empty stands for the whole vocabulary
    sorted_ = false;
    const auto largest_candidate = [&] {
        float m = minus_infinity;
        for (const Candidate& c : candidates_) m = std::max(m, c.logit);
        return m;
    };
    if (p.top_k > 0 && static_cast<uint32_t>(p.top_k) < n_vocab_) keep_top_k(logits, static_cast<size_t>(p.top_k));
    if (p.typical_p < 1.0f) {
        if (candidates_.empty()) all_candidates(logits);
        keep_typical(p.typical_p);
        max = largest_candidate();  // the likeliest token is not always typical
    }
    if (p.top_p < 1.0f) keep_top_p(logits, max, p.top_p);
    if (p.min_p > 0.0f) keep_min_p(logits, max, p.min_p);
    if (candidates_.empty()) {
        for (size_t i = 0; i < logits.size(); ++i) weights_[i] = exp_nonpositive((logits[i] - max) / p.temperature);
        return Outcome::weights;
    }
    for (size_t i = 0; i < candidates_.size(); ++i) weights_[i] = exp_nonpositive((candidates_[i].logit - max) / p.temperature);
    return Outcome::candidates;
}

double Sampler::total_weight(size_t n) const {
    return sum_of(n, [&](size_t i) { return weights_[i]; });
}

TokenId Sampler::sample(const SampleInput& in) {
    TokenId token = -1;
    const Outcome outcome = prepare(in, token);
    if (outcome == Outcome::error) return -1;
    if (outcome == Outcome::token) return token;
    const size_t n = outcome == Outcome::weights ? n_vocab_ : candidates_.size();
    const double target = uniform_draw(in.params->seed, in.choice, in.position) * total_weight(n);
    double sum = 0.0;
    size_t chosen = 0;
    for (size_t i = 0; i < n; ++i) {
        if (weights_[i] == 0.0f) continue;
        chosen = i;  // rounding may leave the sum just below the target: then the last possible one
        sum += static_cast<double>(weights_[i]);
        if (sum > target) break;
    }
    return outcome == Outcome::weights ? static_cast<TokenId>(chosen) : candidates_[chosen].id;
}

std::vector<std::pair<TokenId, double>> Sampler::distribution(const SampleInput& in) {
    TokenId token = -1;
    const Outcome outcome = prepare(in, token);
    if (outcome == Outcome::error) return {};
    if (outcome == Outcome::token) return {{token, 1.0}};
    const size_t n = outcome == Outcome::weights ? n_vocab_ : candidates_.size();
    const double total = total_weight(n);
    std::vector<std::pair<TokenId, double>> out;
    for (size_t i = 0; i < n; ++i) {
        const TokenId id = outcome == Outcome::weights ? static_cast<TokenId>(i) : candidates_[i].id;
        if (weights_[i] > 0.0f) out.emplace_back(id, static_cast<double>(weights_[i]) / total);
    }
    return out;
}

float Sampler::logprobs(std::span<const float> logits, TokenId token, std::span<TokenLogprob> top) {
    const float max = largest(logits);
    const double z = sum_of(logits.size(), [&](size_t i) { return exp_nonpositive(logits[i] - max); });
    const double log_z = std::log(z);
    const auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max) - log_z); };
    if (!top.empty()) {
        keep_top_k(logits, top.size());
        for (size_t i = 0; i < top.size(); ++i) {
            top[i] = i < candidates_.size() ? TokenLogprob{candidates_[i].id, logprob(candidates_[i].logit)} : TokenLogprob{};
        }
    }
    return logprob(logits[static_cast<size_t>(token)]);
}

}  // namespace engine
