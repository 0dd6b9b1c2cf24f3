// One request, and the ends it can have.
#include <gtest/gtest.h>

#include "tests/engine/rig.h"

using namespace engine;
using engine_test::Rig;

namespace {

// Greedy by hand, from the tokens alone.
std::vector<TokenId> greedy(const Rig& rig, std::vector<TokenId> tokens, uint32_t n) {
    std::vector<TokenId> out;
    while (out.size() < n) {
        const std::vector<float> logits = rig.fake->logits_for(tokens);
        const auto best = static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        out.push_back(best);
        tokens.push_back(best);
        if (rig.tokenizer.is_end_of_generation(best)) break;
    }
    return out;
}

}  // namespace

TEST(Engine, GreedyFollowsTheLargestLogit) {
    Rig rig;
    Request r = rig.request("What is the capital of France?", 100);
    const auto want = greedy(rig, r.tokens, 100);
    ASSERT_TRUE(rig.e->submit(r));
    ASSERT_TRUE(rig.finish_all());
    EXPECT_EQ(rig.answer(r.id).tokens, want);
    EXPECT_TRUE(rig.answer(r.id).last_choice);
    EXPECT_EQ(rig.answer(r.id).usage.prompt_tokens, r.tokens.size());
    EXPECT_EQ(rig.answer(r.id).usage.completion_tokens, want.size());
    EXPECT_TRUE(rig.is_empty());
}
