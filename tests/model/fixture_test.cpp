// The forward pass of every family against transformers' models in fp32. Right values: tests/golden/llama_*.logits and
// family_*.logits, made by make_llama_fixtures.py and make_family_fixtures.py there; versions and seeds in *_fixtures.txt.
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

// Every ISA, the text in one chunk, in pieces that cross block borders, and token by token, against the logits of `name`.
void compare(const std::string& name, uint32_t n_tokens_wanted, bool has_reference) {
    const std::vector<std::byte> image = read_golden(name + ".model");
    auto file = gguf::File::parse(image, name);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const Expected expected = read_expected(name + ".logits");
    const auto n_tokens = static_cast<uint32_t>(expected.tokens.size());
    ASSERT_EQ(n_tokens, n_tokens_wanted);
    const std::vector<double> right(expected.logits.begin(), expected.logits.end());
    if (has_reference) {  // the other right value of this folder agrees with this one
        const std::vector<double> doubles = reference::logits(file.value(), expected.tokens);
        EXPECT_LE(reference::distance(expected.logits, doubles).nmse, nmse_max);
    }

    for (const std::string_view isa : kernels::cpu::known_isas()) {
        if (!kernels::cpu::isa_runs_here(isa)) continue;
        const auto model = model_test::load(file.value(), n_tokens, {std::string(isa)});
        ASSERT_TRUE(model);
        ASSERT_EQ(model->n_vocab(), expected.n_vocab);
        std::vector<float> whole;
        for (const uint32_t chunk : {n_tokens, 37u, 1u}) {
            const std::vector<float> got = model_test::logits(*model, expected.tokens, chunk);
            const reference::Distance d = reference::distance(got, right);
            EXPECT_LE(d.nmse, nmse_max) << isa << ", chunks of " << chunk;
            if (chunk == n_tokens) {
                whole = got;
                std::printf("%s, %s: NMSE %.2e, max %.2e sigmas\n", name.c_str(), std::string(isa).c_str(), d.nmse, d.max_in_sigmas);
            }
            EXPECT_TRUE(got == whole) << isa << ", chunks of " << chunk << ": other bits";
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

class LlamaFixture : public testing::TestWithParam<const char*> {};
TEST_P(LlamaFixture, SameLogitsAsTransformers) { compare(std::string("llama_") + GetParam(), 100, true); }
INSTANTIATE_TEST_SUITE_P(Llama, LlamaFixture, testing::Values("gqa", "wide_heads", "llama3_rope", "linear_rope"),
                         [](const auto& info) { return std::string(info.param); });

class FamilyFixture : public testing::TestWithParam<const char*> {};
TEST_P(FamilyFixture, SameLogitsAsTransformers) { compare(std::string("family_") + GetParam(), 150, false); }
INSTANTIATE_TEST_SUITE_P(Families, FamilyFixture,
                         testing::ValuesIn(model_test::family_fixtures),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
