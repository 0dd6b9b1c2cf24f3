// A sequence through model::Model, for the tests of this folder: loading from an image, and the logits of every position.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

namespace model_test {

// tests/golden/family_*.model, one or more of every family.
inline constexpr const char* family_fixtures[] = {"mistral_window", "llama_biases", "llama_yarn", "mixtral", "smollm3", "granite", "qwen2", "qwen3", "qwen3moe",
                                                  "gemma", "gemma2", "gemma3", "phi3", "phi3_longrope", "olmo2"};

struct RunOptions {
    std::string isa;  // empty: the best one here
    uint32_t activation_bits = 16;
    uint32_t threads = 2;
};

inline std::unique_ptr<model::Model> load(const gguf::File& file, uint32_t n_tokens, const RunOptions& run = {}) {
    auto backend = kernels::cpu::create({run.threads, run.isa, run.activation_bits});
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    if (!backend.ok()) return nullptr;
    model::ModelOptions options;
    options.kv_type = kernels::KvType::f32;
    options.kv_blocks_count = (n_tokens + limits::kv_block_tokens - 1) / limits::kv_block_tokens + 1;
    options.logit_rows_max = options.step_rows_max = n_tokens;
    auto loaded = model::Model::load(file, std::move(backend).value(), options);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return loaded.ok() ? std::move(loaded).value() : nullptr;
}

// (tokens, n_vocab); the sequence goes in as `chunk` tokens at a time. Physical blocks in falling order, block 0 unused, so that a
// mix-up of logical and physical blocks shows.
inline std::vector<float> logits(model::Model& model, std::span<const int32_t> tokens, uint32_t chunk) {
    std::vector<model::BlockIndex> blocks(model.kv_blocks_count() - 1);
    std::iota(blocks.rbegin(), blocks.rend(), 1u);
    std::vector<float> out;
    for (uint32_t start = 0; start < tokens.size(); start += chunk) {
        const auto n = std::min<uint32_t>(chunk, static_cast<uint32_t>(tokens.size()) - start);
        const model::SequenceSlice slice{0, n, start, blocks};
        std::vector<uint32_t> rows(n);
        std::iota(rows.begin(), rows.end(), 0u);
        const model::Logits got = model.forward({tokens.subspan(start, n), {&slice, 1}, rows});
        CHECK_EQ(got.n_rows, n);
        out.insert(out.end(), got.data, got.data + size_t{n} * got.n_vocab);
    }
    return out;
}

// Tokens that repeat seldom; the same everywhere.
inline std::vector<int32_t> some_tokens(uint32_t n, uint32_t n_vocab) {
    std::vector<int32_t> tokens(n);
    uint32_t state = 12345;
    for (int32_t& token : tokens) {
        state = state * 1664525u + 1013904223u;  // Numerical Recipes' generator; its high bits are good
        token = static_cast<int32_t>(uint64_t{state} * n_vocab >> 32);
    }
    return tokens;
}

}  // namespace model_test
