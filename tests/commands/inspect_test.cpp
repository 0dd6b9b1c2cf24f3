#include "commands/inspect.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "json/parse.h"
#include "support/gguf_bytes.h"
#include "support/model_builder.h"

namespace commands {
namespace {

class Inspect : public testing::Test {
  protected:
    Inspect() : path_(testing::TempDir() + "hearth_inspect_" + std::to_string(getpid()) + ".gguf") {}
    ~Inspect() override { unlink(path_.c_str()); }

    int run(InspectOptions options = {}) {
        options.path = path_;
        out_.str("");
        err_.str("");
        return inspect_command(options, out_, err_);
    }
    void write(const support::GgufBytes& bytes) {
        std::ofstream(path_, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.bytes().data()), static_cast<std::streamsize>(bytes.size()));
    }
    json::Value json() {
        auto value = json::parse(out_.str());
        EXPECT_TRUE(value.ok()) << value.error().message;
        return value.ok() ? value.value() : json::Value{};
    }
    static int64_t number(const json::Value& root, std::initializer_list<std::string_view> keys) {
        const json::Value* at = &root;
        for (const std::string_view key : keys) {
            at = at->find(key);
            if (!at) return -1;
        }
        return at->as_int() ? *at->as_int() : -2;
    }
    void expect_line(const std::string& line) { EXPECT_NE(out_.str().find(line), std::string::npos) << line << "\nin\n" << out_.str(); }
    void expect_one_error(const std::string& part) {
        const std::string text = err_.str();
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }

    std::string path_;
    std::ostringstream out_, err_;
};

TEST_F(Inspect, ATinyModelInFigures) {
    support::ModelSpec spec;  // 2 layers, 128 wide, 4 heads of 32, 2 KV heads, feed-forward 256, 320 tokens, 1024 of context
    support::write_model(spec, path_);
    ASSERT_EQ(run({.json = true, .context = 100, .sequences = 3}), 0) << err_.str();
    const json::Value root = json();
    // By hand: two embeddings, and per layer q and o (128 x 128), k and v (128 x 64), three of 128 x 256, two norms; last norm.
    const int64_t parameters = 2 * 320 * 128 + 2 * (2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 256 + 2 * 128) + 128;
    EXPECT_EQ(number(root, {"total", "parameters"}), parameters);
    EXPECT_EQ(number(root, {"total", "bytes"}), parameters * 4);
    EXPECT_EQ(number(root, {"total", "tensors"}), 1 + 1 + 2 * 9 + 1);
    EXPECT_EQ(number(root, {"types", "F32", "tensors"}), 21);
    EXPECT_EQ(number(root, {"model", "layers"}), 2);
    EXPECT_EQ(number(root, {"model", "head_dim"}), 32);
    EXPECT_EQ(number(root, {"model", "vocabulary"}), 320);
    // K and V of 2 layers, 2 heads of 32: 256 numbers a token.
    EXPECT_EQ(number(root, {"model", "kv_bytes_per_token", "f16"}), 512);
    EXPECT_EQ(number(root, {"model", "kv_bytes_per_token", "f32"}), 1024);
    // 100 tokens take two blocks of 64; three sequences six.
    EXPECT_EQ(number(root, {"memory", "kv_blocks"}), 6);
    EXPECT_EQ(number(root, {"memory", "kv_bytes"}), 6 * 64 * 512);
    EXPECT_EQ(number(root, {"memory", "context"}), 100);
    EXPECT_GE(number(root, {"memory", "weights_bytes"}), parameters * 4 - 320 * 128 * 4);
    EXPECT_EQ(number(root, {"memory", "total_bytes"}),
              number(root, {"memory", "weights_bytes"}) + number(root, {"memory", "activations_bytes"}) +
                  number(root, {"memory", "scratch_bytes"}) + 6 * 64 * 512);
    EXPECT_TRUE(root.find("problem")->is_null());
    EXPECT_EQ(*root.find("metadata")->find("llama.rope.freq_base")->find("type")->as_string(), "f32");
    EXPECT_EQ(number(root, {"metadata", "tokenizer.ggml.tokens", "count"}), 320);
    EXPECT_EQ(root.find("metadata")->find("tokenizer.ggml.tokens")->find("first")->as_array()->size(), 8u);
    EXPECT_EQ(root.find("tensors")->as_array()->size(), 21u);
    EXPECT_EQ(number((*root.find("tensors")->as_array())[0], {"bytes"}), 320 * 128 * 4);

    ASSERT_EQ(run({.context = 100, .sequences = 3, .kv_type = "f32"}), 0) << err_.str();
    expect_line("memory for 3 sequences of 100 tokens at once, KV as f32\n");
    expect_line("393,216 bytes (384.0 KiB) in 6 blocks of 64 tokens\n");
    expect_line("tokenizer.ggml.tokens                   string[320]  [\"<|endoftext|>\", \"<|im_start|>\"");
    expect_line("token_embd.weight         F32  128 x 320");
    expect_line("parameters    377,472\n");
    EXPECT_EQ(parameters, 377'472);
    EXPECT_EQ(err_.str(), "");
    ASSERT_EQ(run(), 0);
    expect_line("memory for 64 sequences of 1,024 tokens at once, KV as f16\n");
}

TEST_F(Inspect, EveryTensorType) {
    for (const quant::TypeInfo& row : quant::type_infos) {
        support::write_model(support::spec_for(row.type), path_);
        ASSERT_EQ(run({.json = true}), 0) << row.name << ": " << err_.str();
        EXPECT_GT(number(json(), {"types", row.name, "bytes"}), 0) << row.name;
    }
}

TEST_F(Inspect, ForeignTextIsEscaped) {
    support::ModelSpec spec;
    spec.without.insert("general.name");
    spec.extra_metadata = [](gguf::Writer& writer) {
        writer.add_string("general.name", "evil\x1b[2J\nname \xff");
        writer.add_f32("x.nan", std::numeric_limits<float>::quiet_NaN());
        writer.add_f32("x.tenth", 0.1f);
        const uint64_t big[] = {UINT64_MAX};
        writer.add_array<uint64_t>("x.big", gguf::ValueType::u64, big);
    };
    support::write_model(spec, path_);
    ASSERT_EQ(run(), 0);
    EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
    expect_line("\"evil\\x1b[2J\\nname \\xff\"");
    expect_line("[18446744073709551615]");
    expect_line("x.tenth                                 f32          0.1\n");
    ASSERT_EQ(run({.json = true}), 0);
    const json::Value root = json();
    EXPECT_EQ(*root.find("metadata")->find("general.name")->find("value")->as_string(), "evil\x1b[2J\nname \xef\xbf\xbd");
    EXPECT_TRUE(root.find("metadata")->find("x.nan")->find("value")->is_null());
}

TEST_F(Inspect, BadFilesAreOneLineAndTwo) {
    EXPECT_EQ(run(), 2);
    expect_one_error("cannot open: No such file or directory");
    write(support::GgufBytes().raw("GGUF").put(9u).zeros(100));
    EXPECT_EQ(run(), 2);
    expect_one_error("version at byte 4 is 9, allowed are 2 and 3");
    EXPECT_EQ(out_.str(), "");
    // A claim of 1 GiB in a file of 100 bytes.
    write(support::GgufBytes().header(3, 0, 1).key("k", 8).put(uint64_t{1} << 30).zeros(55));
    EXPECT_EQ(run({.json = true}), 2);
    expect_one_error("value of 'k' at byte 37 has a length of 1073741824 bytes, allowed are 0 to 16777216");
    EXPECT_EQ(out_.str(), "");
}

TEST_F(Inspect, ABrokenModelIsStillShown) {
    support::ModelSpec spec;
    spec.without.insert("llama.attention.head_count");
    support::write_model(spec, path_);
    EXPECT_EQ(run(), 2);
    expect_one_error("llama.attention.head_count");
    expect_line("llama.block_count");
    EXPECT_EQ(run({.json = true}), 2);
    EXPECT_TRUE(json().find("model")->is_null());
    spec = {};
    spec.without.insert("blk.1.attn_q.weight");
    support::write_model(spec, path_);
    EXPECT_EQ(run(), 2);
    expect_one_error("blk.1.attn_q.weight");
}

TEST_F(Inspect, AnotherArchitectureIsDescribed) {
    support::ModelSpec spec;
    spec.without.insert("general.architecture");
    spec.extra_metadata = [](gguf::Writer& writer) { writer.add_string("general.architecture", "mamba"); };
    support::write_model(spec, path_);
    EXPECT_EQ(run(), 0);
    expect_line("hearth cannot serve this file: ");
    expect_line("mamba");
    EXPECT_EQ(err_.str(), "");
}

TEST_F(Inspect, BadOptions) {
    support::write_model({}, path_);
    EXPECT_EQ(run({.kv_type = "q4"}), 2);
    expect_one_error("allowed: f16, f32");
    EXPECT_EQ(run({.context = 4096}), 2);
    expect_one_error("4096");
    EXPECT_EQ(out_.str(), "");
}

// Figures of a model whose memory no machine has: nothing wraps, nothing is allocated.
TEST_F(Inspect, ATerabyteModel) {
    const uint64_t n = uint64_t{1} << 38;
    support::GgufBytes head;
    head.header(3, 1, 1).key("general.architecture", 8).string("mamba").tensor("t", {n}, 0, 0).align(32);
    write(head);
    if (truncate(path_.c_str(), static_cast<off_t>(head.size() + n * 4)) != 0) GTEST_SKIP() << "no files of a terabyte here";
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    EXPECT_EQ(run(), 0);
    getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024);
    expect_line("274,877,906,944");
}

}  // namespace
}  // namespace commands
