// Which tensor of a model gets which format: the mixes that GGUF files are published under (Q4_K_M and so on).
// The choices are llama.cpp's, so that a file of a given name is what its users expect; tests/golden/recipes.txt holds the
// types that llama-quantize itself chose. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "quant/types.h"

namespace quant {

//    id       name      general.file_type, format of most tensors
#define QUANT_RECIPES(X)          \
    X(f32,    "F32",     0, f32)    \
    X(f16,    "F16",     1, f16)    \
    X(bf16,   "BF16",   32, bf16)   \
    X(q8_0,   "Q8_0",    7, q8_0)   \
    X(q4_0,   "Q4_0",    2, q4_0)   \
    X(q4_1,   "Q4_1",    3, q4_1)   \
    X(q5_0,   "Q5_0",    8, q5_0)   \
    X(q5_1,   "Q5_1",    9, q5_1)   \
    X(q2_k,   "Q2_K",   10, q2_k)   \
    X(q2_k_s, "Q2_K_S", 21, q2_k)   \
    X(q3_k_s, "Q3_K_S", 11, q3_k)   \
    X(q3_k_m, "Q3_K_M", 12, q3_k)   \
    X(q3_k_l, "Q3_K_L", 13, q3_k)   \
    X(q4_k_s, "Q4_K_S", 14, q4_k)   \
    X(q4_k_m, "Q4_K_M", 15, q4_k)   \
    X(q5_k_s, "Q5_K_S", 16, q5_k)   \
    X(q5_k_m, "Q5_K_M", 17, q5_k)   \
    X(q6_k,   "Q6_K",   18, q6_k)   \
    X(iq4_nl, "IQ4_NL", 25, iq4_nl) \
    X(iq4_xs, "IQ4_XS", 30, iq4_xs)

enum class RecipeId : uint8_t {
#define X(id, name, number, base) id,
    QUANT_RECIPES(X)
#undef X
};

struct Recipe {
    RecipeId id;
    std::string_view name;
    uint32_t file_type;  // general.file_type
    Type base;
};

inline constexpr std::array recipes = {
#define X(id, name, number, base) Recipe{RecipeId::id, name, number, Type::base},
    QUANT_RECIPES(X)
#undef X
};

// By name in any case; Q3_K, Q4_K and Q5_K mean the middle mix (_M). Null for an unknown name.
const Recipe* find_recipe(std::string_view name);

struct RecipeTensor {
    std::string_view name;
    Type type = Type::f32;                // in the input
    uint64_t dims[4] = {1, 1, 1, 1};      // dims[0] is the row length
};

// What the choices look at beside names and shapes.
struct RecipeModel {
    std::string_view architecture;
    uint32_t n_layers = 0;
    uint32_t n_heads = 1, n_kv_heads = 1;  // of the first layer
    uint32_t n_experts = 0;
    bool has_importance = false;
};

struct Choice {
    Type type = Type::f32;
    bool fallback = false;          // the row length fits no block of the wanted format
    bool wants_importance = false;  // too few bits for a guess: the quantizer refuses without importance
};

// One choice for each tensor. A tensor that stays as it is keeps its type: vectors, norms, routers and other small things.
std::vector<Choice> choose_types(const Recipe& recipe, const RecipeModel& model, std::span<const RecipeTensor> tensors);

}  // namespace quant
