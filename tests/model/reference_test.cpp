// The forward pass against the same mathematics in double (reference.cpp).
#include "reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/mapped_file.h"
#include "gguf/writer.h"
#include "running.h"
#include "support/model_builder.h"

namespace {

using reference::Distance;

// F32 weights, F32 KV: what is left is the rounding of fp32, 2^-24 in each operation. Sums of up to 512 products round like a
// random walk, so a product has a relative error of some 1e-7 to 1e-6, an NMSE of 1e-14 to 1e-12; ten products follow each other.
constexpr double f32_nmse_max = 1e-10;
constexpr double f32_sigmas_max = 1e-3;

// 16-bit activations with integer weights: two levels of 8 bits, so a block of 32 is rounded to steps of max|x| / (127 * 256). For
// normal values the maximum of 32 is about 2.2 deviations, so the error of a value is (2.2 / 32512)^2 / 12 = 3.8e-10 of its variance,
// and that of a product of random signs the same share of the product's. 5 products in a row of each of 2 layers add up to some 4e-9;
// softmax and the product of gate and up multiply it a few times. 1e-7 leaves a factor of ten.
constexpr double bits16_nmse_max = 1e-7;
// 8 bits: steps of max|x| / 127, 256^2 times the variance: 2.5e-5 a product, 2.5e-4 in ten, and the same few times more.
constexpr double bits8_nmse_max = 2e-3;

struct Shape {
    const char* name;
    uint32_t n_layers, n_embd, n_heads, n_kv_heads, n_ff;
    bool tied, rope_freqs;
    float linear_factor;  // 1: no key
};

const Shape shapes[] = {
    {"one query head to a key head, heads of 16", 2, 64, 4, 4, 96, false, false, 1},
    {"2 to 1, heads of 32, tied", 2, 128, 4, 2, 160, true, false, 1},
    {"3 to 1, heads of 64, tied, odd n_ff", 2, 192, 3, 1, 200, true, false, 1},
    {"3 to 1, heads of 24, odd n_ff, rope factors", 3, 144, 6, 2, 77, false, true, 1},
    {"4 to 1, heads of 40, width not of 32, linear rope", 1, 160, 4, 1, 50, false, false, 4},
};

support::ModelSpec spec_of(const Shape& shape) {
    support::ModelSpec spec;
    spec.n_layers = shape.n_layers;
    spec.n_embd = shape.n_embd;
    spec.n_heads = shape.n_heads;
    spec.n_kv_heads = shape.n_kv_heads;
    spec.n_ff = shape.n_ff;
    spec.tied_embeddings = shape.tied;
    spec.rope_freqs = shape.rope_freqs;
    if (shape.linear_factor != 1)
        spec.extra_metadata = [factor = shape.linear_factor](gguf::Writer& writer) {
            writer.add_string("llama.rope.scaling.type", "linear");
            writer.add_f32("llama.rope.scaling.factor", factor);
        };
    return spec;
}

std::vector<std::string> isas_here() {
    std::vector<std::string> isas;
    for (const std::string_view isa : kernels::cpu::known_isas())
        if (kernels::cpu::isa_runs_here(isa)) isas.emplace_back(isa);
    return isas;
}

TEST(Reference, F32WeightsOnEveryIsa) {
    constexpr uint32_t n_tokens = 150;  // three KV blocks, the last one in part
    ASSERT_FALSE(isas_here().empty());
    for (const Shape& shape : shapes) {
        const std::vector<std::byte> image = support::build_model(spec_of(shape));
        auto file = gguf::File::parse(image, shape.name);
        ASSERT_TRUE(file.ok()) << file.error().message;
        const std::vector<int32_t> tokens = model_test::some_tokens(n_tokens, support::builtin_vocab());
        const std::vector<double> right = reference::logits(file.value(), tokens);
        for (const std::string& isa : isas_here()) {
            const auto model = model_test::load(file.value(), n_tokens, {isa});
            ASSERT_TRUE(model);
            for (const uint32_t chunk : {n_tokens, 37u, 1u}) {
                const Distance d = reference::distance(model_test::logits(*model, tokens, chunk), right);
                EXPECT_LE(d.nmse, f32_nmse_max) << shape.name << ", " << isa << ", chunks of " << chunk;
                EXPECT_LE(d.max_in_sigmas, f32_sigmas_max) << shape.name << ", " << isa << ", chunks of " << chunk;
                if (chunk == n_tokens) std::printf("%s, %s: NMSE %.2e, max %.2e sigmas\n", shape.name, isa.c_str(), d.nmse, d.max_in_sigmas);
            }
        }
    }
}

TEST(Reference, EveryTypeOnEveryIsa) {
    constexpr uint32_t n_tokens = 70;
    for (const quant::TypeInfo& type : quant::type_infos) {
        const std::vector<std::byte> image = support::build_model(support::spec_for(type.type));
        auto file = gguf::File::parse(image, type.name);
        ASSERT_TRUE(file.ok()) << file.error().message;
        const std::vector<int32_t> tokens = model_test::some_tokens(n_tokens, support::builtin_vocab());
        const std::vector<double> right = reference::logits(file.value(), tokens);
        for (const std::string& isa : isas_here()) {
            const auto fine = model_test::load(file.value(), n_tokens, {isa, 16}), coarse = model_test::load(file.value(), n_tokens, {isa, 8});
            ASSERT_TRUE(fine && coarse);
            const Distance bits16 = reference::distance(model_test::logits(*fine, tokens, n_tokens), right);
            const Distance bits8 = reference::distance(model_test::logits(*coarse, tokens, n_tokens), right);
            EXPECT_LE(bits16.nmse, bits16_nmse_max) << type.name << ", " << isa;
            EXPECT_LE(bits8.nmse, bits8_nmse_max) << type.name << ", " << isa;
            // The distance must see the lower level: 65,536 between the variances; types without integers have one path only.
            if (type.block_elements > 1) {
                EXPECT_GT(bits8.nmse, 1000 * bits16.nmse) << type.name << ", " << isa;
            }
            std::printf("%.*s, %s: NMSE %.2e at 16 bits, %.2e at 8\n", static_cast<int>(type.name.size()), type.name.data(), isa.c_str(), bits16.nmse,
                        bits8.nmse);
        }
    }
}

TEST(Reference, SmolLm2) {
    const char* path = std::getenv("HEARTH_TEST_MODEL");
    if (!path) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
    auto mapped = base::system_files().open_mapped(path);
    ASSERT_TRUE(mapped.ok()) << mapped.error().message;
    auto file = gguf::File::parse(mapped.value()->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    constexpr uint32_t n_tokens = 64;
    const auto model = model_test::load(file.value(), n_tokens);
    ASSERT_TRUE(model);
    // Random tokens: text that no model expects, so that near ties and large activations are many.
    // Measured: NMSE 7.5e-8, the same bits on every instruction set; the tiny models of 2 layers have 2e-9, this one has 30.
    const std::vector<int32_t> tokens = model_test::some_tokens(n_tokens, model->n_vocab());
    const std::vector<double> right = reference::logits(file.value(), tokens);
    const std::vector<float> got = model_test::logits(*model, tokens, n_tokens);
    const Distance d = reference::distance(got, right);
    std::printf("NMSE %.2e, max %.2e sigmas\n", d.nmse, d.max_in_sigmas);
    EXPECT_LE(d.nmse, 1e-7);
    for (uint32_t t = 0; t < n_tokens; ++t) {
        const auto row = std::span(right).subspan(size_t{t} * model->n_vocab(), model->n_vocab());
        const auto ours = std::span(got).subspan(size_t{t} * model->n_vocab(), model->n_vocab());
        const size_t best = static_cast<size_t>(std::max_element(ours.begin(), ours.end()) - ours.begin());
        EXPECT_LT(*std::max_element(row.begin(), row.end()) - row[best], 0.01) << "position " << t;
    }
}

}  // namespace
