// The forward pass against transformers' LlamaForCausalLM in fp32. Right values: tests/golden/llama_*.logits, made by
// tests/golden/make_llama_fixtures.py; versions and seeds in tests/golden/llama_fixtures.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "reference.h"
#include "running.h"

namespace {

// Both sides round in fp32; the largest part is transformers' angle, position * frequency rounded to 2^-24 of up to 99 radians: an
// error of some 3e-6 in a rotated value, an NMSE of 1e-11. 1e-8 is a thousand times that, and far below any fault of formula.
constexpr double nmse_max = 1e-8;

std::vector<std::byte> read_golden(const std::string& name) {
    std::ifstream in(std::string(HEARTH_GOLDEN) + "/" + name, std::ios::binary);
    EXPECT_TRUE(in.good()) << name;
    const std::vector<char> text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

struct Expected {
    uint32_t n_vocab = 0;
    std::vector<int32_t> tokens;
    std::vector<float> logits;  // (tokens, n_vocab)
};

// The form is described in make_llama_fixtures.py.
Expected read_expected(const std::string& name) {
    const std::vector<std::byte> bytes = read_golden(name);
    Expected out;
    int32_t shape[2];
    if (bytes.size() < 16 || std::memcmp(bytes.data(), "HLOGITS1", 8) != 0) return out;
    std::memcpy(shape, bytes.data() + 8, sizeof shape);
    const auto n_tokens = static_cast<size_t>(shape[0]), n_vocab = static_cast<size_t>(shape[1]);
    if (bytes.size() != 16 + 4 * n_tokens + 4 * n_tokens * n_vocab) return out;
    out.n_vocab = static_cast<uint32_t>(n_vocab);
    out.tokens.resize(n_tokens);
    out.logits.resize(n_tokens * n_vocab);
    std::memcpy(out.tokens.data(), bytes.data() + 16, 4 * n_tokens);
    std::memcpy(out.logits.data(), bytes.data() + 16 + 4 * n_tokens, 4 * out.logits.size());
    return out;
}

class Fixture : public testing::TestWithParam<const char*> {};

TEST_P(Fixture, SameLogitsAsTransformers) {
    const std::string name = std::string("llama_") + GetParam();
    const std::vector<std::byte> image = read_golden(name + ".model");
    auto file = gguf::File::parse(image, name);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const Expected expected = read_expected(name + ".logits");
    const auto n_tokens = static_cast<uint32_t>(expected.tokens.size());
    ASSERT_EQ(n_tokens, 100u);
    const std::vector<double> right(expected.logits.begin(), expected.logits.end());

    // The other right value of this folder agrees with this one.
    const std::vector<double> doubles = reference::logits(file.value(), expected.tokens);
    EXPECT_LE(reference::distance(expected.logits, doubles).nmse, nmse_max);

    for (const std::string_view isa : kernels::cpu::known_isas()) {
        if (!kernels::cpu::isa_runs_here(isa)) continue;
        const auto model = model_test::load(file.value(), n_tokens, {std::string(isa)});
        ASSERT_TRUE(model);
        ASSERT_EQ(model->n_vocab(), expected.n_vocab);
        for (const uint32_t chunk : {n_tokens, 1u}) {
            const std::vector<float> got = model_test::logits(*model, expected.tokens, chunk);
            const reference::Distance d = reference::distance(got, right);
            EXPECT_LE(d.nmse, nmse_max) << isa << ", chunks of " << chunk;
            if (chunk == n_tokens)
                std::printf("%s, %s: NMSE %.2e, max %.2e sigmas\n", GetParam(), std::string(isa).c_str(), d.nmse, d.max_in_sigmas);
            for (uint32_t t = 0; t < n_tokens; ++t) {
                const auto best = [&](const std::vector<float>& rows) {
                    const auto first = rows.begin() + ptrdiff_t{t} * expected.n_vocab;
                    return std::max_element(first, first + expected.n_vocab) - first;
                };
                EXPECT_EQ(best(got), best(expected.logits)) << isa << ", chunks of " << chunk << ", position " << t;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Llama, Fixture, testing::Values("gqa", "wide_heads", "llama3_rope", "linear_rope"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
