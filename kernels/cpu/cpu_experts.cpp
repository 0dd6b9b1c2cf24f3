// Mixtures of experts: the router's choice for each row, then one expert after another over the rows that chose it.
// A row's sum goes over its experts in ascending order, whoever else is in the step.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace kernels::cpu {
namespace {

// The n best of scores (n_all), as indices in ascending order, and their softmax over all scores. In double, plainly: some
// hundred scores a row are nothing beside the experts themselves.
void choose(const float* scores, uint32_t n_all, const ExpertsSpec& spec, uint32_t* best, float* weights) {
    for (uint32_t k = 0; k < spec.n_used; ++k) {
        uint32_t found = n_all;
        for (uint32_t e = 0; e < n_all; ++e) {
            if (std::find(best, best + k, e) != best + k) continue;
            if (found == n_all || scores[e] > scores[found]) found = e;
        }
        best[k] = found;
    }
    std::sort(best, best + spec.n_used);
    double most = scores[best[0]], total = 0, used = 0;
    for (uint32_t e = 0; e < n_all; ++e) most = std::max(most, double{scores[e]});
    for (uint32_t e = 0; e < n_all; ++e) total += std::exp(scores[e] - most);
    for (uint32_t k = 0; k < spec.n_used; ++k) used += std::exp(scores[best[k]] - most);
    for (uint32_t k = 0; k < spec.n_used; ++k) weights[k] = static_cast<float>(std::exp(scores[best[k]] - most) / (spec.normalise ? used : total));
}

}  // namespace

void CpuBackend::experts(const ExpertsSpec& spec, const Matrix& router, std::span<const Expert> all, Tensor x, const ExpertBuffers& b, Tensor out) {
    const auto n_all = static_cast<uint32_t>(all.size());
    CHECK(spec.n_used >= 1 && spec.n_used <= experts_used_max && spec.n_used <= n_all && n_all <= step_.n_experts && spec.n_used <= step_.n_experts_used);
    CHECK_EQ(router.rows, n_all);
    const Tensor scores = b.scores.first(x.rows);
    matmul(router, x, scores, false);

    uint32_t best[experts_used_max];
    float weights[experts_used_max];
    std::fill(expert_ends_.begin(), expert_ends_.end(), 0u);
    for (uint32_t row = 0; row < x.rows; ++row) {
        choose(scores.data + size_t{row} * n_all, n_all, spec, best, weights);
        for (uint32_t k = 0; k < spec.n_used; ++k) {
            chosen_[size_t{row} * spec.n_used + k] = {best[k], weights[k]};
            ++expert_ends_[best[k]];
        }
    }
    // By expert, rows in order: the counts become where each begins, and filling makes that where it ends.
    uint32_t sum = 0;
    for (uint32_t e = 0; e < n_all; ++e) {
        const uint32_t count = expert_ends_[e];
        expert_ends_[e] = sum;
        sum += count;
    }
    for (uint32_t row = 0; row < x.rows; ++row)
        for (uint32_t k = 0; k < spec.n_used; ++k) {
            const Chosen& chosen = chosen_[size_t{row} * spec.n_used + k];
            choices_[expert_ends_[chosen.expert]++] = {row, chosen.weight};
        }

    uint32_t begin = 0;
    for (uint32_t e = 0; e < n_all; ++e) {
        const uint32_t end = expert_ends_[e], n = end - begin;
        if (n == 0) continue;
        const Tensor mine = b.x.first(n), hidden = b.hidden.first(n), y = b.y.first(n);
        for (uint32_t i = 0; i < n; ++i)
            std::memcpy(mine.data + size_t{i} * mine.cols, x.data + size_t{choices_[begin + i].row} * x.cols, x.cols * sizeof(float));
        gated(spec.activation, all[e].gate, all[e].up, mine, b.spare.first(n), hidden);
        matmul(all[e].down, hidden, y, false);
        for_rows(n, out.cols / 8 + 1, [&](uint32_t i) {
            const Choice& choice = choices_[begin + i];
            table_.add_scaled(out.data + size_t{choice.row} * out.cols, y.data + size_t{i} * y.cols, choice.weight, out.cols);
        });
        begin = end;
    }
}

}  // namespace kernels::cpu
