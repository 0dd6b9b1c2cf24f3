// The promise of model/batch.h: a row's logits are the same bits alone or in any company, however the prompt was cut, on any
// physical blocks, with a shared prefix or without, on any number of threads, on every instruction set of this machine.
// Right values: the sequence computed alone, in one chunk, on one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/file.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"
#include "running.h"
#include "support/model_builder.h"

namespace {

constexpr uint32_t block = limits::kv_block_tokens;
constexpr uint32_t blocks_count = 160;
constexpr uint32_t sequences_max = 32;
constexpr uint32_t tokens_max = 150;

using Bits = std::vector<uint64_t>;  // a hash of the logits of each position

// FNV-1a over the bits of a row.
uint64_t hash_of(std::span<const float> row) {
    uint64_t hash = 1469598103934665603u;
    for (float value : row) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * 1099511628211u;
    }
    return hash;
}

std::unique_ptr<model::Model> load(const gguf::File& file, const std::string& isa, uint32_t threads, kernels::KvType kv_type, uint32_t activation_bits) {
    auto backend = kernels::cpu::create({threads, isa, activation_bits});
    CHECK(backend.ok());
    model::ModelOptions options;
    options.kv_type = kv_type;
    options.kv_blocks_count = blocks_count;
    options.context_length = 256;
    options.logit_rows_max = limits::step_tokens;
    auto model = model::Model::load(file, std::move(backend).value(), options);
    CHECK(model.ok());
    return std::move(model).value();
}

struct Text {
    std::vector<model::TokenId> tokens;
    Bits alone;
};

Bits alone(model::Model& model, const std::vector<model::TokenId>& tokens) {
    std::vector<model::BlockIndex> table((tokens.size() + block - 1) / block);
    std::iota(table.begin(), table.end(), 0u);
    std::vector<uint32_t> rows(tokens.size());
    std::iota(rows.begin(), rows.end(), 0u);
    const model::SequenceSlice slice{0, static_cast<uint32_t>(tokens.size()), 0, table};
    const model::Logits logits = model.forward({tokens, {&slice, 1}, rows});
    Bits bits;
    for (uint32_t i = 0; i < logits.n_rows; ++i) bits.push_back(hash_of(logits.row(i)));
    return bits;
}

// Texts of which every second one begins with the first block of the one before it.
std::vector<Text> make_texts(model::Model& model, uint32_t count, std::mt19937_64& rng) {
    std::vector<Text> texts(count);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t length = 2 + static_cast<uint32_t>(rng() % (tokens_max - 2));
        for (uint32_t t = 0; t < length; ++t) texts[i].tokens.push_back(static_cast<model::TokenId>(rng() % model.n_vocab()));
        if (i % 2 == 1 && length > block && texts[i - 1].tokens.size() > block)
            std::copy_n(texts[i - 1].tokens.begin(), block, texts[i].tokens.begin());
        texts[i].alone = alone(model, texts[i].tokens);
    }
    return texts;
}

struct Seen {
    uint64_t schedules = 0, steps = 0, mixed_steps = 0, shared_prefixes = 0, rows = 0, widest = 0;
};

// One schedule: sequences join at random steps, each step takes random ones with random numbers of rows, all on shuffled
// blocks. Every row's logits are compared with those of its text alone.
void run_schedule(model::Model& model, const std::vector<Text>& texts, uint64_t seed, uint32_t company, Seen& seen) {
    std::mt19937_64 rng(seed);
    const bool crowd = company == texts.size();  // all join at once
    struct Sequence {
        const Text* text = nullptr;
        std::vector<model::BlockIndex> table;
        uint32_t computed = 0;
        uint32_t chunk = 1;  // 1: decodes, else the longest chunk it takes
    };
    std::vector<uint32_t> order(texts.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), rng);
    std::vector<model::BlockIndex> free(blocks_count);
    std::iota(free.begin(), free.end(), 0u);
    std::shuffle(free.begin(), free.end(), rng);

    std::vector<Sequence> running;
    size_t next = 0;
    const size_t total = std::min<size_t>(company, texts.size());
    std::vector<Sequence> finished;
    while (next < total || !running.empty()) {
        while (next < total && (crowd || running.empty() || rng() % 2 == 0)) {
            Sequence joined;
            const uint32_t index = order[next++];
            joined.text = &texts[index];
            joined.chunk = rng() % 3 == 0 ? 1 : 1 + static_cast<uint32_t>(rng() % 100);
            // A finished text with the same first block lends it: a prefix hit.
            for (const Sequence& other : finished)
                if (other.text != joined.text && other.text->tokens.size() >= block && joined.text->tokens.size() > block &&
                    std::equal(other.text->tokens.begin(), other.text->tokens.begin() + block, joined.text->tokens.begin())) {
                    joined.table.push_back(other.table[0]);
                    joined.computed = block;
                    ++seen.shared_prefixes;
                    break;
                }
            while (joined.table.size() * block < joined.text->tokens.size()) {
                ASSERT_FALSE(free.empty());
                joined.table.push_back(free.back());
                free.pop_back();
            }
            running.push_back(std::move(joined));
        }
        std::vector<model::TokenId> tokens;
        std::vector<model::SequenceSlice> slices;
        std::vector<uint32_t> rows;
        std::vector<uint64_t> right;
        bool prefills = false, decodes = false;
        std::shuffle(running.begin(), running.end(), rng);
        for (Sequence& sequence : running) {
            if (running.size() > 1 && rng() % (crowd ? 64 : 5) == 0) continue;  // sits this step out
            const auto length = static_cast<uint32_t>(sequence.text->tokens.size());
            const uint32_t room = limits::step_tokens - static_cast<uint32_t>(tokens.size());
            const uint32_t n = std::min({1 + static_cast<uint32_t>(rng() % sequence.chunk), length - sequence.computed, room});
            if (n == 0) continue;
            (n > 1 ? prefills : decodes) = true;
            slices.push_back({static_cast<uint32_t>(tokens.size()), n, sequence.computed, sequence.table});
            for (uint32_t i = 0; i < n; ++i) {
                tokens.push_back(sequence.text->tokens[sequence.computed + i]);
                if (i + 1 == n || rng() % 4 == 0) {
                    rows.push_back(static_cast<uint32_t>(tokens.size()) - 1);
                    right.push_back(sequence.text->alone[sequence.computed + i]);
                }
            }
            sequence.computed += n;
        }
        if (tokens.empty()) continue;
        const model::Logits logits = model.forward({tokens, slices, rows});
        ASSERT_EQ(logits.n_rows, rows.size());
        for (uint32_t i = 0; i < logits.n_rows; ++i)
            ASSERT_EQ(hash_of(logits.row(i)), right[i]) << "seed " << seed << ", step " << seen.steps << ", row " << rows[i] << " of " << tokens.size();
        ++seen.steps;
        seen.mixed_steps += prefills && decodes;
        seen.rows += rows.size();
        seen.widest = std::max<uint64_t>(seen.widest, slices.size());
        for (size_t i = 0; i < running.size();) {
            if (running[i].computed < running[i].text->tokens.size()) {
                ++i;
                continue;
            }
            finished.push_back(std::move(running[i]));
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    ++seen.schedules;
}

void run_schedules(const gguf::File& file, uint32_t schedules, uint32_t texts_count, kernels::KvType kv_type, uint32_t activation_bits) {
    for (std::string_view isa : kernels::cpu::known_isas()) {
        if (!kernels::cpu::isa_runs_here(isa)) continue;
        std::mt19937_64 rng(7);
        auto one = load(file, std::string(isa), 1, kv_type, activation_bits);
        const std::vector<Text> texts = make_texts(*one, texts_count, rng);
        one.reset();
        Seen seen;
        const uint32_t share = isa == "scalar" ? schedules / 8 : schedules;  // the plain bodies are slow
        const uint32_t thread_counts[] = {1, 2, 3, 5};
        for (uint32_t threads : thread_counts) {
            auto model = load(file, std::string(isa), threads, kv_type, activation_bits);
            for (uint32_t s = 0; s < std::max(1u, share / 4); ++s) {
                // Alone, in pairs, up to 32.
                const uint32_t company = s % 4 == 1 ? texts_count : s % 4 == 0 ? 2 : 2 + static_cast<uint32_t>(rng() % (texts_count - 2));
                run_schedule(*model, texts, uint64_t{threads} << 32 | s, company, seen);
                if (testing::Test::HasFatalFailure()) return;
            }
        }
        std::printf("%s: %llu schedules, %llu steps, %llu mixed, %llu shared prefixes, %llu rows, up to %llu sequences a step\n", std::string(isa).c_str(),
                    static_cast<unsigned long long>(seen.schedules), static_cast<unsigned long long>(seen.steps), static_cast<unsigned long long>(seen.mixed_steps),
                    static_cast<unsigned long long>(seen.shared_prefixes), static_cast<unsigned long long>(seen.rows), static_cast<unsigned long long>(seen.widest));
        EXPECT_GT(seen.mixed_steps, 0u);
        if (isa == "scalar") continue;  // too few schedules for the rest
        EXPECT_GT(seen.shared_prefixes, 0u);
        EXPECT_EQ(seen.widest, texts_count);
    }
}

uint32_t scaled(uint32_t schedules) { return std::getenv("HEARTH_VERIFY") ? schedules * 10 : schedules; }

void run_tiny(quant::Type type, uint32_t schedules, kernels::KvType kv_type, uint32_t activation_bits) {
    support::ModelSpec spec = support::spec_for(type);
    spec.n_layers = 2;
    const std::vector<std::byte> image = support::build_model(spec);
    auto file = gguf::File::parse(image, "tiny");
    ASSERT_TRUE(file.ok()) << file.error().message;
    run_schedules(file.value(), scaled(schedules), sequences_max, kv_type, activation_bits);
}

TEST(Bits, TinyQ4) { run_tiny(quant::Type::q4_1, 240, kernels::KvType::f16, 16); }
TEST(Bits, TinyQ8WithF32Kv) { run_tiny(quant::Type::q8_0, 120, kernels::KvType::f32, 16); }
TEST(Bits, TinyF32) { run_tiny(quant::Type::f32, 120, kernels::KvType::f32, 16); }
TEST(Bits, TinyQ4KWith8BitActivations) { run_tiny(quant::Type::q4_k, 64, kernels::KvType::f16, 8); }

// Windows, experts, soft caps, two ropes: nothing in a family looks at its neighbours.
class FamilyBits : public testing::TestWithParam<const char*> {};
TEST_P(FamilyBits, AloneAndInCompany) {
    const std::string path = std::string(HEARTH_GOLDEN) + "/family_" + GetParam() + ".model";
    auto mapped = base::system_files().open_mapped(path);
    ASSERT_TRUE(mapped.ok());
    auto file = gguf::File::parse(mapped.value()->bytes(), path);
    ASSERT_TRUE(file.ok());
    run_schedules(file.value(), scaled(64), 24, kernels::KvType::f16, 16);
    if (std::getenv("HEARTH_VERIFY")) run_schedules(file.value(), scaled(64), 24, kernels::KvType::f32, 16);
}
INSTANTIATE_TEST_SUITE_P(Families, FamilyBits, testing::ValuesIn(model_test::family_fixtures), [](const auto& info) { return std::string(info.param); });

TEST(Bits, TheDefaultModel) {
    const char* path = std::getenv("HEARTH_TEST_MODEL");
    if (!path) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
    auto mapped = base::system_files().open_mapped(path);
    ASSERT_TRUE(mapped.ok());
    auto file = gguf::File::parse(mapped.value()->bytes(), path);
    ASSERT_TRUE(file.ok());
    if (std::getenv("HEARTH_VERIFY")) return run_schedules(file.value(), 400, sequences_max, kernels::KvType::f16, 16);
    // A short form: the fastest bodies, 1 and 3 threads.
    const std::string isa(kernels::cpu::best_isa());
    std::mt19937_64 rng(11);
    auto one = load(file.value(), isa, 1, kernels::KvType::f16, 16);
    const std::vector<Text> texts = make_texts(*one, 6, rng);
    one.reset();
    auto three = load(file.value(), isa, 3, kernels::KvType::f16, 16);
    Seen seen;
    for (uint64_t seed = 0; seed < 6; ++seed) {
        run_schedule(*three, texts, seed, 6, seen);
        if (HasFatalFailure()) return;
    }
    EXPECT_GT(seen.mixed_steps, 0u);
}

}  // namespace
