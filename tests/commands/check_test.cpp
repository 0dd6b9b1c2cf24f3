// What `hearth inspect --check` finds: made files with one fault each, and sound ones in which there is nothing.
#include "commands/check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <sstream>

#include "commands/inspect.h"
#include "json/parse.h"
#include "support/fake_files.h"
#include "support/model_builder.h"

namespace commands {
namespace {

using support::ModelSpec;

// "severity check: message" of each finding, a line each.
std::string findings_of(const std::vector<std::byte>& image) {
    auto file = gguf::File::parse(image, "m.gguf");
    EXPECT_TRUE(file.ok()) << file.error().message;
    std::string out;
    for (const Finding& finding : check_model(CheckedModel(file.value()))) {
        static constexpr const char* names[] = {"note", "warning", "error"};
        out += std::string(names[static_cast<size_t>(finding.severity)]) + " " + std::string(finding.check) + ": " + finding.message + "\n";
        EXPECT_EQ(finding.message.find('\n'), std::string::npos);
    }
    return out;
}
std::string findings_of(const ModelSpec& spec) { return findings_of(support::build_model(spec)); }

// A sound model but for `key`, which is left out or written by `write`.
ModelSpec with(const std::string& key, std::function<void(gguf::Writer&)> write = {}) {
    ModelSpec spec;
    spec.without.insert(key);
    spec.extra_metadata = std::move(write);
    return spec;
}
ModelSpec with_template(const std::string& source) {
    return with("tokenizer.chat_template", [source](gguf::Writer& w) { w.add_string("tokenizer.chat_template", source); });
}

void expect_only(const std::string& found, const std::string& start, const std::string& part = "") {
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1) << found;
    EXPECT_EQ(found.rfind(start, 0), 0u) << found;
    EXPECT_NE(found.find(part), std::string::npos) << found;
}

TEST(Check, SoundFilesOfEveryType) {
    for (const quant::TypeInfo& row : quant::type_infos) EXPECT_EQ(findings_of(support::spec_for(row.type)), "") << row.name;
    ModelSpec spec;
    spec.tied_embeddings = spec.rope_freqs = true;
    EXPECT_EQ(findings_of(spec), "");
}

TEST(Check, TheTableHasEachNameOnce) {
    std::set<std::string_view> names;
    for (const Check& row : check_table()) EXPECT_TRUE(names.insert(row.name).second && !row.what.empty()) << row.name;
}

TEST(Check, Family) {
    expect_only(findings_of(with("llama.block_count")), "error family: ", "llama.block_count");
    expect_only(findings_of(with("general.architecture", [](gguf::Writer& w) { w.add_string("general.architecture", "mamba"); })), "error family: ", "'mamba'");
    expect_only(findings_of(with("llama.rope.dimension_count", [](gguf::Writer& w) { w.add_u32("llama.rope.dimension_count", 64); })), "error family: ",
                "is 64; allowed: 1 to 32");
}

TEST(Check, Ranges) {
    const auto f32 = [](const std::string& key, float value) { return with(key, [=](gguf::Writer& w) { w.add_f32(key, value); }); };
    expect_only(findings_of(f32("llama.rope.freq_base", 10)), "warning ranges: metadata key 'llama.rope.freq_base' at byte ", "is 10; ");
    expect_only(findings_of(f32("llama.attention.layer_norm_rms_epsilon", 0.5f)), "warning ranges: ", "is 0.5; ");
    expect_only(findings_of(with("llama.context_length", [](gguf::Writer& w) { w.add_u32("llama.context_length", 2); })), "warning ranges: ", "is 2; ");
    const auto scaled = [](uint32_t original, float factor) {
        ModelSpec spec;
        spec.extra_metadata = [=](gguf::Writer& w) {
            w.add_string("llama.rope.scaling.type", "yarn");
            w.add_f32("llama.rope.scaling.factor", factor);
            w.add_u32("llama.rope.scaling.original_context_length", original);
        };
        return findings_of(spec);
    };
    EXPECT_EQ(scaled(256, 4), "");  // 1024 of context
    expect_only(scaled(256, 2), "warning ranges: ", "is 1024, but the original context of 256 stretched 2 times gives 512");
    expect_only(scaled(4096, 4), "warning ranges: ", "is 4096, above the context length, 1024");
    expect_only(scaled(4, 256), "warning ranges: ", "rope.scaling.factor' at byte ");
}

TEST(Check, Shapes) {
    expect_only(findings_of(with("blk.1.attn_q.weight")), "error shapes: tensor 'blk.1.attn_q.weight' is missing");
    // One layer less than there are tensors of: nine that nothing reads, each named.
    const std::string found = findings_of(with("llama.block_count", [](gguf::Writer& w) { w.add_u32("llama.block_count", 1); }));
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 9) << found;
    EXPECT_NE(found.find("error shapes: tensor 'blk.1.ffn_down.weight' (data at byte "), std::string::npos);
}

TEST(Check, WrongShapesAreAllNamed) {
    const std::string found = findings_of(with("llama.feed_forward_length", [](gguf::Writer& w) { w.add_u32("llama.feed_forward_length", 128); }));
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 6) << found;  // gate, up and down of two layers
    EXPECT_NE(found.find("'blk.0.ffn_gate.weight' (data at byte "), std::string::npos);
    EXPECT_NE(found.find("has shape [128, 256]; the metadata asks for [128, 128]"), std::string::npos);
}

// The vocabulary of the model builder again, with a change.
ModelSpec with_tokens(const std::function<void(std::vector<std::string>&)>& change) {
    const std::vector<std::byte> image = support::build_model({});
    auto file = gguf::File::parse(image, "m");
    const auto views = file.value().get_strings("tokenizer.ggml.tokens").value();
    std::vector<std::string> tokens(views.begin(), views.end());
    change(tokens);
    return with("tokenizer.ggml.tokens", [tokens](gguf::Writer& w) { w.add_strings("tokenizer.ggml.tokens", tokens); });
}

TEST(Check, Vocabulary) {
    expect_only(findings_of(with("tokenizer.ggml.tokens")), "error vocabulary: ", "tokenizer.ggml.tokens");
    expect_only(findings_of(with_tokens([](auto& tokens) { tokens[319] = tokens[300]; })), "error vocabulary: metadata key 'tokenizer.ggml.tokens' at byte ",
                "twice, as tokens 300 and 319");
    expect_only(findings_of(with_tokens([](auto& tokens) { tokens[7] = ""; })), "error vocabulary: ", "has no text for token 7");
    expect_only(findings_of(with("tokenizer.ggml.token_type", [](gguf::Writer& w) {
                    w.add_array<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::i32, std::vector<int32_t>(319, 3));
                })), "error vocabulary: ", "has 319 elements for 320 tokens");
    expect_only(findings_of(with("tokenizer.ggml.merges")), "error vocabulary: ", "tokenizer.ggml.merges");
    expect_only(findings_of(with("tokenizer.ggml.model", [](gguf::Writer& w) { w.add_string("tokenizer.ggml.model", "t5"); })), "error vocabulary: ", "\"t5\"");
}

TEST(Check, SpecialTokens) {
    const auto id = [](const std::string& key, uint32_t value) { return findings_of(with(key, [=](gguf::Writer& w) { w.add_u32(key, value); })); };
    expect_only(id("tokenizer.ggml.padding_token_id", 320), "error special-tokens: ", "is 320; allowed are ids of tokens, below 320");
    expect_only(id("tokenizer.ggml.bos_token_id", 50), "warning special-tokens: ", "is token 50, \"/\", which is normal; expected is one that is control");  // 3 + '/'
    expect_only(findings_of(with("tokenizer.ggml.eos_token_id")), "error special-tokens: ", "eos_token_id is missing");
    expect_only(id("tokenizer.ggml.fim_pre_token_id", 70'000), "error special-tokens: ", "is 70000");
}

TEST(Check, PreTokenizer) {
    expect_only(findings_of(with("tokenizer.ggml.pre")), "error pre-tokenizer: ", "tokenizer.ggml.pre");
    expect_only(findings_of(with("tokenizer.ggml.pre", [](gguf::Writer& w) { w.add_string("tokenizer.ggml.pre", "martian"); })), "error pre-tokenizer: ", "\"martian\"");
    // A vocabulary with tokens of three digits, and a name under which each digit is alone.
    const auto digits = [](const char* pre) {
        std::vector<std::string> tokens;
        std::vector<int32_t> types;
        const std::vector<std::byte> image = support::build_model({});
        auto file = gguf::File::parse(image, "m");
        const auto texts = file.value().get_strings("tokenizer.ggml.tokens");
        const auto kinds = file.value().get_ints("tokenizer.ggml.token_type");
        for (const std::string_view text : texts.value()) tokens.emplace_back(text);
        for (const int64_t kind : kinds.value()) types.push_back(static_cast<int32_t>(kind));
        for (int i = 0; i < 1'000; ++i) {
            char text[8];
            std::snprintf(text, sizeof text, "%03d", i);
            tokens.emplace_back(text);
            types.push_back(1);
        }
        ModelSpec spec;
        spec.n_vocab = static_cast<uint32_t>(tokens.size());
        spec.without = {"tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"};
        spec.extra_metadata = [=](gguf::Writer& w) {
            w.add_string("tokenizer.ggml.pre", pre);
            w.add_strings("tokenizer.ggml.tokens", tokens);
            w.add_array<int32_t>("tokenizer.ggml.token_type", gguf::ValueType::i32, types);
        };
        return findings_of(spec);
    };
    EXPECT_EQ(digits("llama-bpe"), "");
    expect_only(digits("qwen2"), "warning pre-tokenizer: ", "\"qwen2\", which cuts 1000 of the ");
}

TEST(Check, Template) {
    const std::string turn = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n", loop = "{% for m in messages %}", end = "{% endfor %}";
    EXPECT_EQ(findings_of(with_template(loop + turn + end)), "");
    expect_only(findings_of(with("tokenizer.chat_template")), "warning template: the file has no chat template");
    expect_only(findings_of(with_template("{% for %}")), "error template: the chat template cannot be read: ");
    expect_only(findings_of(with_template("{{ messages[0].content.nothing() }}")), "error template: a plain conversation cannot be rendered: ");
    const std::string no_user = findings_of(with_template(loop + "<|im_start|>{{ m.role }}{% if m.role == 'assistant' %}{{ m.content }}{% endif %}<|im_end|>" + end));
    EXPECT_EQ(no_user.rfind("error template: the text of the user is not in the prompt\n", 0), 0u) << no_user;
    expect_only(findings_of(with_template(loop + "{% if m.role != 'system' %}" + turn + "{% endif %}" + end)), "warning template: the system message is not in the prompt");
    // Refused on purpose: a note, as the template's authors mean it.
    expect_only(findings_of(with_template(loop + "{% if m.role == 'system' %}{{ raise_exception('no system please') }}{% endif %}" + turn + end)),
                "note template: a conversation with a system message is refused by the template: no system please");
    expect_only(findings_of(with_template("{% if messages[0].role == 'system' %}{{ messages[0].content.nothing() }}{% endif %}" + loop + turn + end)),
                "error template: a conversation with a system message cannot be rendered: ");
    expect_only(findings_of(with_template("{% if tools %}{{ tools.nothing.at.all }}{% endif %}" + loop + turn + end)), "error template: a conversation with tools cannot be rendered: ");
    expect_only(findings_of(with_template("{% if tools %}{{ tools }}{% else %}" + loop + turn + end + "{% endif %}")),
                "error template: with tools the text of the user is not in the prompt");
    expect_only(findings_of(with_template("{% for m in messages if m.role != 'assistant' %}" + turn + end)), "error template: earlier answers are not in the prompt");
    expect_only(findings_of(with_template("{% if messages|length > 1 and messages[0].role == 'user' and add_generation_prompt %}{{ x.y.z }}{% endif %}" + loop + turn + end)),
                "error template: a conversation of two turns cannot be rendered: ");
}

TEST(Check, EndOfTurn) {
    expect_only(findings_of(with_template("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")), "warning end-of-turn: ", "puts no special token behind an answer");
    // <|im_start|> is control and ends nothing.
    expect_only(findings_of(with_template("{% for m in messages %}<|im_start|>{{ m.content }}<|im_start|>{% endfor %}")), "error end-of-turn: the template ends a turn with token 1, \"<|im_start|>\"",
                "eos_token_id is 2");
}

TEST(Check, FileType) {
    const auto says = [](uint32_t file_type, quant::Type type) {
        ModelSpec spec = support::spec_for(type);
        spec.extra_metadata = [=](gguf::Writer& w) { w.add_u32("general.file_type", file_type); };
        return findings_of(spec);
    };
    // Numbers as llama.cpp's enum llama_ftype has them.
    EXPECT_EQ(says(0, quant::Type::f32), "");
    EXPECT_EQ(says(2, quant::Type::q4_0), "");
    EXPECT_EQ(says(15, quant::Type::q4_k), "");
    EXPECT_EQ(says(15 + 1024, quant::Type::q4_k), "");  // LLAMA_FTYPE_GUESSED
    ModelSpec narrow;  // rows of 128 fit no block of 256: another type is right
    narrow.n_ff = 128;
    narrow.type = narrow.embedding_type = quant::Type::q8_0;
    narrow.extra_metadata = [](gguf::Writer& w) { w.add_u32("general.file_type", 15); };
    EXPECT_EQ(findings_of(narrow), "");
    expect_only(says(15, quant::Type::q6_k), "warning file-type: metadata key 'general.file_type' at byte ", "says Q4_K_M, but the matrices are 16 Q6_K");
    expect_only(says(1, quant::Type::q4_0), "warning file-type: ", "says F16, but the matrices are 16 Q4_0");
    expect_only(says(999, quant::Type::f32), "note file-type: ", "is 999, a mix that hearth doesn't know");
}

// `bytes` over the data of a tensor, from byte `at` of it.
std::vector<std::byte> patched(const ModelSpec& spec, std::string_view tensor, uint64_t at, std::span<const std::byte> bytes) {
    std::vector<std::byte> image = support::build_model(spec);
    auto file = gguf::File::parse(image, "m");
    std::memcpy(image.data() + file.value().find_tensor(tensor)->offset + at, bytes.data(), bytes.size());
    return image;
}

TEST(Check, NotANumberInEveryType) {
    const uint16_t f16_nan = 0x7e00, bf16_infinity = 0x7f80;
    const float infinity = std::numeric_limits<float>::infinity();
    const auto bytes_of = [](const auto& value) { return std::as_bytes(std::span(&value, 1)); };
    struct Row {
        quant::Type type;
        uint64_t scale_at;  // of an fp16 scale (or weight) in a block, by the layouts of the GGUF specification
    };
    for (const Row row : {Row{quant::Type::f16, 0}, Row{quant::Type::q4_0, 0}, Row{quant::Type::q4_1, 2}, Row{quant::Type::q5_0, 0}, Row{quant::Type::q5_1, 0},
                          Row{quant::Type::q8_0, 0}, Row{quant::Type::q2_k, 80}, Row{quant::Type::q3_k, 108}, Row{quant::Type::q4_k, 0}, Row{quant::Type::q5_k, 2},
                          Row{quant::Type::q6_k, 208}, Row{quant::Type::iq4_nl, 0}, Row{quant::Type::iq4_xs, 0}}) {
        const ModelSpec spec = support::spec_for(row.type);
        const quant::TypeInfo& type = quant::info(row.type);
        // Row 5, its last block.
        const uint64_t block = 6 * spec.n_embd / type.block_elements - 1;
        const std::string found = findings_of(patched(spec, "blk.1.attn_q.weight", block * type.block_bytes + row.scale_at, bytes_of(f16_nan)));
        expect_only(found, "error numbers: tensor 'blk.1.attn_q.weight' row 5 (byte ", type.block_elements > 1 ? "NaN or infinite scale in a " : "NaN or infinite weight in a F16 block\n");
    }
    expect_only(findings_of(patched(support::spec_for(quant::Type::bf16), "blk.0.attn_k.weight", 2 * 128 * 3, bytes_of(bf16_infinity))),
                "error numbers: tensor 'blk.0.attn_k.weight' row 3 (byte ", "weight in a BF16 block\n");
    expect_only(findings_of(patched({}, "blk.0.attn_norm.weight", 4 * 127, bytes_of(infinity))), "error numbers: tensor 'blk.0.attn_norm.weight' row 0 (byte ");
    const float two[2 * 128] = {infinity};  // rows 7 (one) and 8 (none, but zeros)
    expect_only(findings_of(patched({}, "token_embd.weight", 4 * 128 * 7, std::as_bytes(std::span(two)))), "error numbers: tensor 'token_embd.weight' row 7 (byte ", "F32 block\n");
    std::vector<float> many(128 * 3, infinity);
    expect_only(findings_of(patched({}, "token_embd.weight", 4 * 128 * 7, std::as_bytes(std::span(many)))), "error numbers: ", "; 3 of its 320 rows have one\n");
}

TEST(Check, TensorsOfZeros) {
    const std::vector<std::byte> zeros(128 * 64 / 32 * 18);
    const ModelSpec spec = support::spec_for(quant::Type::q4_0);
    expect_only(findings_of(patched(spec, "blk.1.attn_v.weight", 0, zeros)), "warning numbers: tensor 'blk.1.attn_v.weight' (data at byte ", ") has zeros only\n");
    // One weight that is not zero, the last.
    std::vector<std::byte> almost = zeros;
    almost[almost.size() - 18] = std::byte{1};
    almost[almost.size() - 1] = std::byte{0};
    EXPECT_EQ(findings_of(patched(spec, "blk.1.attn_v.weight", 0, almost)), "");
}

TEST(Check, AtMostSoManyOfAKind) {
    ModelSpec spec;
    spec.n_vocab = 400;
    std::vector<std::string> tokens(400, "same");
    spec.without.insert("tokenizer.ggml.tokens");
    spec.extra_metadata = [&](gguf::Writer& w) { w.add_strings("tokenizer.ggml.tokens", tokens); };
    const std::string found = findings_of(spec);
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 51) << found;
    EXPECT_NE(found.find("error vocabulary: and 349 more of this kind\n"), std::string::npos);
}

class CheckCommand : public testing::Test {
  protected:
    int run(bool json = false) {
        out_.str("");
        err_.str("");
        return inspect_command({.path = "m.gguf", .json = json, .check = true}, out_, err_, files_);
    }
    support::FakeFiles files_;
    std::ostringstream out_, err_;
};

TEST_F(CheckCommand, CodesAndForms) {
    files_.files["m.gguf"] = support::build_model({});
    EXPECT_EQ(run(), 0);
    EXPECT_EQ(out_.str(), "m.gguf: nothing odd in 24 metadata keys and 21 tensors\n");
    files_.files["m.gguf"] = support::build_model(with("tokenizer.chat_template"));
    EXPECT_EQ(run(), 1);
    EXPECT_EQ(out_.str(), "warning: template: the file has no chat template; serving a chat takes --chat-template\nm.gguf: 0 errors, 1 warning, 0 notes\n");
    EXPECT_EQ(run(true), 1);
    auto parsed = json::parse(out_.str());
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed.value().find("warnings")->as_int(), 1);
    EXPECT_EQ(*parsed.value().find("errors")->as_int(), 0);
    const json::Value& finding = (*parsed.value().find("findings")->as_array())[0];
    EXPECT_EQ(*finding.find("severity")->as_string(), "warning");
    EXPECT_EQ(*finding.find("check")->as_string(), "template");
    // A note is not a fault.
    files_.files["m.gguf"] = support::build_model({.extra_metadata = [](gguf::Writer& w) { w.add_u32("general.file_type", 999); }});
    EXPECT_EQ(run(), 0);
    EXPECT_NE(out_.str().find("\nm.gguf: 0 errors, 0 warnings, 1 note\n"), std::string::npos);
}

TEST_F(CheckCommand, WhatIsNoModelIsTwo) {
    EXPECT_EQ(run(), 2);
    files_.files["m.gguf"].assign(100, std::byte{7});
    EXPECT_EQ(run(), 2);
    EXPECT_EQ(out_.str(), "");
    files_.files["m.gguf"] = support::build_model({});
    files_.changed_while_read = true;
    EXPECT_EQ(run(), 2);
    EXPECT_EQ(out_.str(), "");
}

}  // namespace
}  // namespace commands
