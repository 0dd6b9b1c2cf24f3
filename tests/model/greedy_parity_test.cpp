// Greedy text against llama.cpp on the same file. Right values: tests/golden/peer_greedy.txt, made by
// tests/golden/make_peer_greedy.py. At most 2 of the 10 prompts may differ, each where the two best logits lie within 0.05
// of each other in both programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

namespace {

constexpr double tie = 0.05;
constexpr int differing_prompts_max = 2;

struct Step {
    model::TokenId token = 0;
    double best = 0, second = 0;
};

struct Prompt {
    std::string text;
    std::vector<model::TokenId> ids;
    std::vector<Step> steps;
};

std::vector<Prompt> read_prompts(const std::string& path) {
    std::ifstream in(path);
    std::vector<Prompt> prompts;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word == "prompt") prompts.push_back({line.substr(7), {}, {}});
        if (word == "ids")
            for (model::TokenId id; words >> id;) prompts.back().ids.push_back(id);
        if (word == "step") {
            Step step;
            words >> step.token >> step.best >> step.second;
            prompts.back().steps.push_back(step);
        }
    }
    return prompts;
}

TEST(GreedyParity, TenPrompts) {
    const char* path = std::getenv("HEARTH_TEST_MODEL");
    if (!path) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
    auto mapped = base::system_files().open_mapped(path);
    ASSERT_TRUE(mapped.ok()) << mapped.error().message;
    auto file = gguf::File::parse(mapped.value()->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    auto backend = kernels::cpu::create({});
    ASSERT_TRUE(backend.ok()) << backend.error().message;
    model::ModelOptions options;
    options.kv_blocks_count = 4;
    options.context_length = 256;
    auto loaded = model::Model::load(file.value(), std::move(backend).value(), options);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    model::Model& model = *loaded.value();

    const std::vector<Prompt> prompts = read_prompts(std::string(HEARTH_GOLDEN) + "/peer_greedy.txt");
    ASSERT_EQ(prompts.size(), 10u);
    std::vector<model::BlockIndex> blocks(options.kv_blocks_count);
    std::iota(blocks.begin(), blocks.end(), 0u);
    int differing = 0;
    for (const Prompt& prompt : prompts) {
        ASSERT_GE(prompt.steps.size(), 1u);
        std::vector<model::TokenId> tokens = prompt.ids;
        uint32_t computed = 0;
        for (size_t i = 0; i < prompt.steps.size(); ++i) {
            const auto n_rows = static_cast<uint32_t>(tokens.size()) - computed;
            const model::SequenceSlice slice{0, n_rows, computed, blocks};
            const uint32_t last = n_rows - 1;
            const auto logits = model.forward({std::span(tokens).subspan(computed), {&slice, 1}, {&last, 1}}).row(0);
            computed = static_cast<uint32_t>(tokens.size());
            const auto best = std::max_element(logits.begin(), logits.end());
            const auto token = static_cast<model::TokenId>(best - logits.begin());
            const Step& right = prompt.steps[i];
            if (token != right.token) {
                float second = -1e30f;
                for (auto it = logits.begin(); it != logits.end(); ++it)
                    if (it != best) second = std::max(second, *it);
                std::printf("differs at token %zu of \"%s\": %d, there %d; the two best are %.4f apart, there %.4f\n", i, prompt.text.c_str(), token,
                            right.token, double{*best} - second, right.best - right.second);
                EXPECT_LE(double{*best} - second, tie) << prompt.text;
                EXPECT_LE(right.best - right.second, tie) << prompt.text;
                ++differing;
                break;
            }
            tokens.push_back(token);
        }
    }
    EXPECT_LE(differing, differing_prompts_max);
}

}  // namespace
