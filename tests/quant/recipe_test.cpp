// The types of every recipe against those that llama-quantize chose (tests/golden/make_recipes.py).
#include "quant/recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace quant {
namespace {

struct GoldenModel {
    std::string name, architecture;
    RecipeModel facts;
    std::vector<std::string> names;
    std::vector<RecipeTensor> tensors;  // names point into `names`
};

TEST(Recipe, GivesTheTypesOfLlamaQuantize) {
    std::ifstream in(GOLDEN_DIR "/recipes.txt");
    std::vector<Type> letters;
    GoldenModel model;
    std::set<std::string> models, seen;
    size_t compared = 0, fallbacks = 0;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string kind;
        words >> kind;
        if (kind == "letters") {
            for (std::string name; words >> name;) letters.push_back(from_name(name).value());
        } else if (kind == "model") {
            model = {};
            words >> model.name >> model.architecture >> model.facts.n_layers >> model.facts.n_heads >> model.facts.n_kv_heads >> model.facts.n_experts;
            models.insert(model.name);
        } else if (kind == "tensor") {
            RecipeTensor tensor;
            std::string name;
            words >> name;
            size_t d = 0;
            while (d < 4 && words >> tensor.dims[d]) ++d;
            if (d < 4) tensor.dims[d] = 1;  // a failed read sets 0
            tensor.type = d == 1 ? Type::f32 : Type::f16;
            model.names.push_back(name);
            model.tensors.push_back(tensor);
        } else if (kind == "types") {
            std::string recipe, types;
            words >> recipe >> model.facts.has_importance >> types;
            model.facts.architecture = model.architecture;
            for (size_t i = 0; i < model.tensors.size(); ++i) model.tensors[i].name = model.names[i];
            ASSERT_EQ(types.size(), model.tensors.size());
            const std::vector<Choice> choices = choose_types(*find_recipe(recipe), model.facts, model.tensors);
            for (size_t i = 0; i < types.size(); ++i) {
                const Type expected = letters.at(static_cast<size_t>(types[i] - 'a'));
                EXPECT_EQ(info(choices[i].type).name, info(expected).name)
                    << model.name << ' ' << recipe << (model.facts.has_importance ? " with importance " : " ") << model.names[i];
                fallbacks += choices[i].fallback;
                ++compared;
            }
            seen.insert(recipe);
        }
    }
    EXPECT_EQ(models.size(), 9u);
    EXPECT_EQ(seen.size(), recipes.size()) << "every recipe must be in the table";
    EXPECT_GT(compared, 50'000u);
    EXPECT_GT(fallbacks, 500u);
}

TEST(Recipe, NamesAndNumbers) {
    std::set<uint32_t> numbers;
    for (const Recipe& recipe : recipes) {
        EXPECT_TRUE(numbers.insert(recipe.file_type).second) << recipe.name;
        EXPECT_EQ(find_recipe(recipe.name), &recipe);
    }
    EXPECT_EQ(find_recipe("q4_k_m")->name, "Q4_K_M");
    EXPECT_EQ(find_recipe("Q4_K")->name, "Q4_K_M");
    EXPECT_EQ(find_recipe("q3_K")->name, "Q3_K_M");
    EXPECT_EQ(find_recipe("Q5_K")->name, "Q5_K_M");
    for (const char* name : {"", "Q4", "Q4_K_MM", "IQ2_XS", "Q4_K_"}) EXPECT_EQ(find_recipe(name), nullptr) << name;
}

// Too few bits for a guess: only matrices in the middle of the model, only in the smallest mix.
TEST(Recipe, SaysWhatNeedsImportance) {
    const RecipeTensor tensors[] = {{"token_embd.weight", Type::f16, {256, 8, 1, 1}}, {"blk.7.ffn_up.weight", Type::f16, {256, 256, 1, 1}},
                                    {"blk.7.attn_norm.weight", Type::f32, {256, 1, 1, 1}}};
    RecipeModel model{"llama", 8, 4, 4, 0, false};
    const auto small = choose_types(*find_recipe("Q2_K_S"), model, tensors);
    EXPECT_FALSE(small[0].wants_importance);
    EXPECT_TRUE(small[1].wants_importance);
    EXPECT_FALSE(small[2].wants_importance);
    EXPECT_FALSE(choose_types(*find_recipe("Q2_K"), model, tensors)[1].wants_importance);
}

}  // namespace
}  // namespace quant
