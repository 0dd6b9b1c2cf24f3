// Model files whose container is sound and whose numbers are not: each is refused with its field's name and the right code,
// before anything is allocated from it. Every row is one fault in a model that loads without it (ASoundModelLoads).
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "base/message.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"
#include "model/weights.h"
#include "support/model_builder.h"

namespace {

using base::ErrorCode;
using gguf::Writer;
using support::ModelSpec;

constexpr double nan64 = std::numeric_limits<double>::quiet_NaN(), infinity64 = std::numeric_limits<double>::infinity();
constexpr float nan32 = std::numeric_limits<float>::quiet_NaN(), infinity32 = std::numeric_limits<float>::infinity();

// All that Model::load says of the image; ok() where it loads.
base::Result<void> load(const std::vector<std::byte>& image) {
    auto file = gguf::File::parse(image, "broken");
    if (!file) return file.take_error();
    auto backend = kernels::cpu::create({1, "scalar"});
    if (!backend) return backend.take_error();
    model::ModelOptions options;
    options.kv_blocks_count = 1;
    options.step_rows_max = options.logit_rows_max = 1;
    auto model = model::Model::load(file.value(), std::move(backend).value(), options);
    if (!model) return model.take_error();
    return {};
}

// One line, with `field` in it, `code`, and no longer than a log line.
void expect_refused(const base::Result<void>& result, ErrorCode code, std::string_view field, const std::string& what) {
    ASSERT_FALSE(result.ok()) << what << " was accepted";
    const std::string& message = result.error().message;
    EXPECT_EQ(result.error().code, code) << what << ": " << message;
    EXPECT_NE(message.find(field), std::string::npos) << what << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << what;
    EXPECT_LT(message.size(), 600u) << what;
}

// 4 heads of 32 dims, 2 KV heads, 2 layers, 128 wide: the builder's own.
ModelSpec spec_without(const std::string& name, std::function<void(Writer&)> instead = {}) {
    ModelSpec spec;
    spec.without.insert(name);
    spec.extra_metadata = std::move(instead);
    return spec;
}

struct BadKey {
    const char* key;
    const char* what;
    std::function<void(Writer&, const char* key)> write;
    ErrorCode code = ErrorCode::bad_file;
    const char* field = nullptr;  // in the message, by check_tensors; null: read_config's own
    const char* blames = nullptr;  // the key or tensor in read_config's message; null: the key itself
};

std::function<void(Writer&, const char*)> u32(uint32_t value) {
    return [=](Writer& w, const char* key) { w.add_u32(key, value); };
}
std::function<void(Writer&, const char*)> f32(float value) {
    return [=](Writer& w, const char* key) { w.add_f32(key, value); };
}
std::function<void(Writer&, const char*)> f64(double value) {
    return [=](Writer& w, const char* key) { w.add_f64(key, value); };
}
std::function<void(Writer&, const char*)> text(std::string value) {
    return [=](Writer& w, const char* key) { w.add_string(key, value); };
}
const std::function<void(Writer&, const char*)> absent = [](Writer&, const char*) {};

const std::string scaling = "llama.rope.scaling.factor";
std::function<void(Writer&, const char*)> linear(std::function<void(Writer&, const char*)> factor) {
    return [=](Writer& w, const char* key) {
        w.add_string("llama.rope.scaling.type", "linear");
        factor(w, key);
    };
}

std::function<void(Writer&, const char*)> with_used(std::function<void(Writer&, const char*)> count, uint32_t used) {
    return [=](Writer& w, const char* key) {
        count(w, key);
        w.add_u32("llama.expert_used_count", used);
    };
}

std::vector<BadKey> bad_keys() {
    constexpr const char *blocks = "llama.block_count", *heads = "llama.attention.head_count", *kv_heads = "llama.attention.head_count_kv",
                         *rot = "llama.rope.dimension_count", *base = "llama.rope.freq_base", *eps = "llama.attention.layer_norm_rms_epsilon",
                         *context = "llama.context_length", *width = "llama.embedding_length", *ff = "llama.feed_forward_length",
                         *architecture = "general.architecture", *vocab = "llama.vocab_size", *key_length = "llama.attention.key_length";
    return {
        {blocks, "absent", absent},
        {blocks, "0", u32(0)},
        {blocks, "2^31", u32(1u << 31)},
        {blocks, "2^32-1", u32(UINT32_MAX)},
        {blocks, "2^64-1", [](Writer& w, const char* key) { w.add_u64(key, UINT64_MAX); }},
        {blocks, "-1", [](Writer& w, const char* key) { w.add_i32(key, -1); }},
        {blocks, "a string", text("2")},
        {blocks, "a float", f32(2)},
        {blocks, "an array", [](Writer& w, const char* key) { const uint32_t two[] = {2, 2}; w.add_array<uint32_t>(key, gguf::ValueType::u32, two); }},
        {blocks, "one over the limit", u32(limits::model_layers + 1)},
        // Within the limit, but the tensors are not there; nothing may be sized by the claim (llama.cpp #25821 wrote past 512).
        {blocks, "one more than there are", u32(3), ErrorCode::bad_file, "blk.2.attn_norm.weight"},
        {blocks, "513", u32(513), ErrorCode::bad_file, "blk.2.attn_norm.weight"},
        {blocks, "one less than there are", u32(1), ErrorCode::bad_file, "blk.1."},
        {heads, "absent", absent},
        {heads, "0", u32(0)},
        {heads, "2^32-1", u32(UINT32_MAX)},
        {heads, "embedding % heads", u32(6)},
        {heads, "more heads than dims", u32(256)},
        {heads, "half as many", u32(2), ErrorCode::bad_file, "blk.0.attn_k.weight"},
        {kv_heads, "0", u32(0)},
        {kv_heads, "more than heads", u32(8)},
        {kv_heads, "heads % kv heads", u32(3)},
        {kv_heads, "2^32-1", u32(UINT32_MAX)},
        {kv_heads, "other than the tensors", u32(1), ErrorCode::bad_file, "blk.0.attn_k.weight"},
        {width, "0", u32(0)},
        {width, "over the limit", u32(limits::model_width + 1)},
        {width, "other than the tensors", u32(256), ErrorCode::bad_file, "token_embd.weight"},
        {ff, "0", u32(0)},
        {ff, "other than the tensors", u32(255), ErrorCode::bad_file, "blk.0.ffn_gate.weight"},
        {key_length, "0", u32(0)},
        {key_length, "over the limit", u32(limits::model_head_dim + 1)},
        {"llama.attention.value_length", "other than the key length", u32(16), ErrorCode::unsupported},
        {rot, "0", u32(0)},
        {rot, "odd", u32(31)},
        {rot, "over the head size", u32(34)},
        {rot, "2^32-2", u32(UINT32_MAX - 1)},
        {base, "0", f32(0)},
        {base, "-1", f32(-1)},
        {base, "NaN", f32(nan32)},
        {base, "infinity", f32(infinity32)},
        {base, "NaN of 64 bits", f64(nan64)},
        {base, "an integer", u32(10000)},
        {base, "too small to divide by", f64(1e-300)},
        {eps, "absent", absent},
        {eps, "0", f32(0)},
        {eps, "negative", f32(-1e-5f)},
        {eps, "NaN", f32(nan32)},
        {eps, "infinity", f64(infinity64)},
        {eps, "0 once it is a float", f64(1e-60)},
        {scaling.c_str(), "0", linear(f32(0))},
        {scaling.c_str(), "-2", linear(f32(-2))},
        {scaling.c_str(), "NaN", linear(f32(nan32))},
        {scaling.c_str(), "0 without a type", f32(0)},
        {scaling.c_str(), "too small to divide by", linear(f64(1e-320))},
        {"llama.rope.scale_linear", "0", f32(0)},
        {"llama.rope.scaling.type", "yarn without a factor", text("yarn"), ErrorCode::bad_file, nullptr, "llama.rope.scaling.factor"},
        {"llama.rope.scaling.type", "longrope without its tensors", text("longrope"), ErrorCode::bad_file, nullptr, "rope_factors_short.weight"},
        {"llama.rope.scaling.type", "unknown", text("dynamic"), ErrorCode::unsupported},
        {"llama.rope.scaling.type", "a number", u32(1)},
        {context, "absent", absent},
        {context, "0", u32(0)},
        {context, "2^32-1", u32(UINT32_MAX)},
        {vocab, "0", u32(0)},
        {vocab, "more than the rows", u32(321)},
        {vocab, "fewer than the rows", u32(319)},
        {"llama.expert_count", "8 and nothing else", u32(8), ErrorCode::bad_file, nullptr, "llama.expert_used_count"},
        {"llama.expert_count", "over the limit", u32(limits::model_experts + 1)},
        {"llama.expert_count", "without the tensors", with_used(u32(4), 2), ErrorCode::bad_file, "blk.0.ffn_gate_inp.weight"},
        {"llama.expert_count", "fewer than used", with_used(u32(4), 5), ErrorCode::bad_file, nullptr, "llama.expert_used_count"},
        {"llama.expert_count", "none used", with_used(u32(4), 0), ErrorCode::bad_file, nullptr, "llama.expert_used_count"},
        {"llama.expert_shared_count", "1", u32(1), ErrorCode::unsupported},
        {"llama.attention.sliding_window", "over the limit", u32(UINT32_MAX)},
        {"llama.attention.sliding_window", "a string", text("4096")},
        {"llama.attention.sliding_window", "and a pattern of a wrong length",
         [](Writer& w, const char* key) {
             const uint32_t flags[] = {1, 0, 1};
             w.add_u32(key, 4096);
             w.add_array<uint32_t>("llama.attention.sliding_window_pattern", gguf::ValueType::u32, flags);
         }, ErrorCode::bad_file, nullptr, "llama.attention.sliding_window_pattern"},
        {"llama.logit_scale", "present", f32(2), ErrorCode::unsupported},
        {"llama.attn_logit_softcapping", "present", f32(50), ErrorCode::unsupported},
        {architecture, "absent", absent},
        {architecture, "unknown", text("mamba"), ErrorCode::unsupported},
        {architecture, "empty", text(""), ErrorCode::unsupported},
        {architecture, "a number", u32(1)},
        {architecture, "1 MB long", text(std::string(1'000'000, 'l')), ErrorCode::unsupported},
        {architecture, "with a line break", text("llama\nsecond line"), ErrorCode::unsupported},
    };
}

TEST(Config, ASoundModelLoads) {
    const auto loaded = load(support::build_model({}));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    // The keys that may be absent.
    for (const char* key : {"llama.rope.dimension_count", "llama.rope.freq_base", "llama.vocab_size"}) {
        const auto without = load(support::build_model(spec_without(key)));
        EXPECT_TRUE(without.ok()) << key << ": " << without.error().message;
    }
}

// What the base model does not have and may: a window, and a mixture that is switched off.
TEST(Config, WhatSaysNothingIsNoRefusal) {
    for (const auto& [key, value] : {std::pair{"llama.attention.sliding_window", 4096u}, {"llama.attention.sliding_window", 0u}, {"llama.expert_count", 0u}, {"llama.expert_shared_count", 0u}}) {
        const auto loaded = load(support::build_model(spec_without(key, [&, k = key, v = value](Writer& w) { w.add_u32(k, v); })));
        EXPECT_TRUE(loaded.ok()) << key << ": " << loaded.error().message;
    }
}

TEST(Config, EveryNumberOutOfItsBoundsIsRefusedByName) {
    for (const BadKey& bad : bad_keys()) {
        const auto image = support::build_model(spec_without(bad.key, [&](Writer& w) { bad.write(w, bad.key); }));
        expect_refused(load(image), bad.code, bad.field ? bad.field : bad.blames ? bad.blames : bad.key, std::string(bad.key) + ": " + bad.what);
    }
}

// The rows whose message names a key are read_config's own: a caller that plans without tensors sees them too.
TEST(Config, ReadConfigRefusesWhatAKeyIsBlamedFor) {
    for (const BadKey& bad : bad_keys()) {
        const auto image = support::build_model(spec_without(bad.key, [&](Writer& w) { bad.write(w, bad.key); }));
        auto file = gguf::File::parse(image, "broken");
        ASSERT_TRUE(file.ok());
        const auto config = model::read_config(file.value());
        EXPECT_EQ(config.ok(), bad.field != nullptr) << bad.key << ": " << bad.what;
    }
}

TEST(Config, AMessageGivesTheByteOfTheValue) {
    const auto image = support::build_model(spec_without("llama.block_count", [](Writer& w) { w.add_u32("llama.block_count", 0xdeadbeef); }));
    size_t at = 0;  // of the only 0xdeadbeef in the file
    for (size_t i = 0; i + 4 <= image.size(); ++i) {
        uint32_t word;
        std::memcpy(&word, image.data() + i, sizeof word);
        if (word == 0xdeadbeef) at = i;
    }
    ASSERT_GT(at, 0u);
    expect_refused(load(image), ErrorCode::bad_file, "at byte " + std::to_string(at) + " is 3735928559; allowed: 1 to 1024", "block_count");
}

TEST(Config, VocabularyAndEmbeddingsOfOneSize) {
    for (const int extra : {-1, 1}) {
        const auto n = static_cast<size_t>(static_cast<int>(support::builtin_vocab()) + extra);
        const auto image = support::build_model(spec_without("tokenizer.ggml.tokens", [n](Writer& w) {
            std::vector<std::string> tokens;
            for (size_t i = 0; i < n; ++i) tokens.push_back(base::cat("t", i));
            w.add_strings("tokenizer.ggml.tokens", tokens);
        }));
        expect_refused(load(image), ErrorCode::bad_file, "tokenizer.ggml.tokens", "vocabulary of " + std::to_string(n));
        expect_refused(load(image), ErrorCode::bad_file, "token_embd.weight", "vocabulary of " + std::to_string(n));
    }
}

// The builder's model with one tensor left out and, where `n_values` is not 0, another put in its place.
std::vector<std::byte> with_tensor(const std::string& name, std::vector<uint64_t> dims, quant::Type type = quant::Type::f32, float value = 0.5f) {
    uint64_t n = dims.empty() ? 0 : 1;
    for (const uint64_t dim : dims) n *= dim;
    std::vector<float> values(n, value);
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    if (type != quant::Type::f32) bytes.assign(quant::row_bytes(type, n), std::byte{0});
    return support::build_model(spec_without(name, [&](Writer& w) {
        if (!dims.empty()) w.add_tensor(name, type, dims, bytes);
    }));
}

TEST(Tensors, EveryMissingOneIsNamed) {
    const auto image = support::build_model({});
    auto whole = gguf::File::parse(image, "whole");
    ASSERT_TRUE(whole.ok());
    for (const gguf::TensorInfo& tensor : whole.value().tensors()) {
        if (tensor.name == "output.weight") continue;  // optional: the embeddings serve
        const std::string name(tensor.name);
        expect_refused(load(with_tensor(name, {})), ErrorCode::bad_file, "'" + name + "' is missing", "without " + name);
    }
    EXPECT_TRUE(load(with_tensor("output.weight", {})).ok());
}

TEST(Tensors, EveryWrongShapeIsNamed) {
    const auto image = support::build_model({});
    auto whole = gguf::File::parse(image, "whole");
    ASSERT_TRUE(whole.ok());
    for (const gguf::TensorInfo& tensor : whole.value().tensors()) {
        const std::string name(tensor.name);
        const uint64_t cols = tensor.dims[0], rows = tensor.dims[1];
        std::vector<std::vector<uint64_t>> shapes = {{cols + 1, rows}, {cols, rows + 1}, {cols, rows, 2}, {cols, rows, 1, 2}, {1}};
        if (rows > 1) shapes.push_back({cols, rows - 1});
        if (rows != cols && rows > 1) shapes.push_back({rows, cols});
        for (const auto& shape : shapes) expect_refused(load(with_tensor(name, shape)), ErrorCode::bad_file, name, "shape of " + name);
    }
}

TEST(Tensors, OneThatNothingReadsIsNamed) {
    for (const char* name : {"blk.2.attn_q.weight", "blk.0.attn_q.bias", "extra", "blk.0.attn_norm.weight2", "blk.00.attn_norm.weight"})
        expect_refused(load(with_tensor(name, {32})), ErrorCode::bad_file, name, name);
}

TEST(Tensors, RopeFactors) {
    EXPECT_TRUE(load(with_tensor("rope_freqs.weight", {16})).ok());
    for (const uint64_t length : {1, 15, 17, 32})
        expect_refused(load(with_tensor("rope_freqs.weight", {length})), ErrorCode::bad_file, "rope_freqs.weight", "length " + std::to_string(length));
    for (const float value : {0.0f, -1.0f, nan32, infinity32})
        expect_refused(load(with_tensor("rope_freqs.weight", {16}, quant::Type::f32, value)), ErrorCode::bad_file, "rope_freqs.weight", "factor " + std::to_string(value));
}

TEST(Tensors, NormsAreFloats) {
    expect_refused(load(with_tensor("blk.0.attn_norm.weight", {128}, quant::Type::q8_0)), ErrorCode::bad_file, "blk.0.attn_norm.weight", "Q8_0 norm");
}

// The image of `spec` with `bytes` written into the middle of a tensor's data.
std::vector<std::byte> poisoned(const ModelSpec& spec, std::string_view name, uint64_t at_byte, std::span<const std::byte> bytes) {
    std::vector<std::byte> image = support::build_model(spec);
    auto file = gguf::File::parse(image, "sound");
    const gguf::TensorInfo* tensor = file ? file.value().find_tensor(name) : nullptr;
    if (!tensor || at_byte + bytes.size() > tensor->data.size()) {
        ADD_FAILURE() << name;
        return {};
    }
    std::memcpy(image.data() + tensor->offset + at_byte, bytes.data(), bytes.size());
    return image;
}

TEST(Weights, NaNAndInfinityAreRefusedByTensor) {
    const ModelSpec spec;
    for (const float value : {nan32, -nan32, infinity32, -infinity32})
        for (const char* name : {"blk.0.attn_norm.weight", "blk.1.ffn_norm.weight", "output_norm.weight", "token_embd.weight", "blk.1.ffn_down.weight", "output.weight"})
            // The first, and the last of the first 128.
            for (const uint64_t element : {0, 127})
                expect_refused(load(poisoned(spec, name, element * 4, std::as_bytes(std::span(&value, 1)))), ErrorCode::bad_file, name, std::to_string(value));
}

TEST(Weights, ANotFiniteScaleOfABlockIsRefusedByTensor) {
    struct Row {
        quant::Type type;
        uint64_t scale_byte;  // of an fp16 scale in a block, by the format
    };
    constexpr Row rows[] = {{quant::Type::q4_0, 0}, {quant::Type::q4_1, 0}, {quant::Type::q4_1, 2}, {quant::Type::q8_0, 0},
                            {quant::Type::q4_k, 0}, {quant::Type::q4_k, 2}, {quant::Type::q6_k, 208}};
    for (const Row& row : rows) {
        const ModelSpec spec = support::spec_for(row.type);
        const auto sound = load(support::build_model(spec));
        EXPECT_TRUE(sound.ok()) << quant::info(row.type).name << ": " << sound.error().message;
        for (const uint16_t half : {0x7e00, 0xfe00, 0x7c01, 0x7c00, 0xfc00})  // quiet NaNs, a signalling one, infinities
            for (const uint64_t block : {0, 5}) {
                const uint64_t at = block * quant::info(row.type).block_bytes + row.scale_byte;
                expect_refused(load(poisoned(spec, "blk.1.ffn_up.weight", at, std::as_bytes(std::span(&half, 1)))), ErrorCode::bad_file, "blk.1.ffn_up.weight",
                               std::string(quant::info(row.type).name) + " block " + std::to_string(block));
            }
    }
}

TEST(Options, AContextLongerThanTheFilesIsTheCallersFault) {
    const auto image = support::build_model({});
    auto file = gguf::File::parse(image, "whole");
    ASSERT_TRUE(file.ok());
    auto backend = kernels::cpu::create({1, "scalar"});
    ASSERT_TRUE(backend.ok());
    model::ModelOptions options;
    options.context_length = 1025;
    const auto plan = model::plan(file.value(), *backend.value(), options);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(plan.error().message.find("1 to 1024"), std::string::npos) << plan.error().message;
}

}  // namespace
