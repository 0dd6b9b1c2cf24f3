// Logits to a token. The chain, in llama.cpp's default order, so that the same settings mean the same here and there:
//   1. banned tokens and logit_bias (a bias of -100 bans: the token can't be drawn)
//   2. repetition, frequency, presence penalty
//   3. temperature 0: the largest logit, and nothing below
//   4. top_k   5. typical_p   6. top_p   7. min_p    (each over what the one before left, on probabilities renormalised)
//   8. temperature   9. the draw
// So truncation looks at the model's own distribution, and temperature flattens or sharpens what is left.
// Ties go to the lower token id. The result depends on the logits, the parameters, the tokens seen, and
// (seed, choice, position) only. Nothing is allocated after construction. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/event.h"
#include "engine/request.h"
#include "engine/token_counts.h"

namespace engine {

struct SampleInput {
    std::span<const float> logits;  // (n_vocab), raw
    const SamplingParams* params = nullptr;
    const TokenCounts* counts = nullptr;    // null or inactive: no penalties
    std::span<const TokenId> banned;        // can't be drawn: end-of-generation tokens where those are not honoured
    uint32_t choice = 0, position = 0;      // position: index of the token among the generated ones
};

class Sampler {
  public:
    explicit Sampler(uint32_t n_vocab);

    // -1: the row is not a distribution (NaN or infinite entries, all zero) or everything is banned. An error, never
    // a token.
    TokenId sample(const SampleInput& in);

    // Natural logs of the softmax of the raw logits: of `token`, and the top.size() most likely, best first.
    // The row must be one that sample() accepted.
    float logprobs(std::span<const float> logits, TokenId token, std::span<TokenLogprob> top);

    // For tests: the distribution that sample() draws from, (token, probability); allocates.
    std::vector<std::pair<TokenId, double>> distribution(const SampleInput& in);

  private:
    struct Candidate {
        float logit;
        TokenId id;
    };
    struct Scan {
        float max = 0.0f;
        bool ok = false;  // all finite and not all zero
    };
    enum class Outcome : uint8_t { error, token, candidates, weights };

    static Scan scan(std::span<const float> logits);
    static TokenId index_of(std::span<const float> logits, float value);
    static bool better(const Candidate& a, const Candidate& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); }
    // Steps 1 to 8. `token`: decided. `candidates`: candidates_ and weights_[i] of each. `weights`: weights_ by token id.
    Outcome prepare(const SampleInput& in, TokenId& token);
    std::span<const float> adjusted(const SampleInput& in);  // steps 1 and 2
    void keep_top_k(std::span<const float> logits, size_t k);
    void keep_typical(double p);
    void keep_top_p(std::span<const float> logits, float max, double p);
    void keep_min_p(std::span<const float> logits, float max, double p);
    void all_candidates(std::span<const float> logits);
    double total_weight(size_t n) const;

    const uint32_t n_vocab_;
    std::vector<float> scratch_;          // (n_vocab): logits after steps 1 and 2
    std::vector<float> weights_;          // (n_vocab)
    std::vector<Candidate> candidates_;   // capacity n_vocab
    bool sorted_ = false;                 // candidates_ are best first
};

}  // namespace engine
