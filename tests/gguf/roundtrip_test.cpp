// Writer -> parser, the real model, and our file read by the PyPI package `gguf`.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/mapped_file.h"
#include "gguf/file.h"
#include "gguf/writer.h"

namespace gguf {
namespace {

std::span<const std::byte> bytes_of(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

const std::vector<float> weights = [] {
    std::vector<float> out;
    for (int i = 0; i < 96; ++i) out.push_back(static_cast<float>(i) * 0.5f - 7);
    return out;
}();

// One value of every type, two tensors with padding between them.
Writer sample_writer(uint32_t alignment, uint32_t version) {
    Writer writer(alignment, version);
    writer.add_string("general.architecture", "llama");
    writer.add_u8("t.u8", 200);
    writer.add_i8("t.i8", -100);
    writer.add_u16("t.u16", 60'000);
    writer.add_i16("t.i16", -30'000);
    writer.add_u32("t.u32", 4'000'000'000u);
    writer.add_i32("t.i32", -2'000'000'000);
    writer.add_u64("t.u64", std::numeric_limits<uint64_t>::max());
    writer.add_i64("t.i64", std::numeric_limits<int64_t>::min());
    writer.add_f32("t.f32", 0.1f);
    writer.add_f64("t.f64", 0.1);
    writer.add_bool("t.bool", true);
    writer.add_string("t.empty", "");
    writer.add_strings("t.strings", std::vector<std::string>{"a", "", "\xc3\xa9\n"});
    const int32_t ints[] = {-1, 0, 7};
    writer.add_array<int32_t>("t.ints", ValueType::i32, ints);
    const uint64_t big[] = {1, uint64_t{1} << 63};
    writer.add_array<uint64_t>("t.big", ValueType::u64, big);
    const float floats[] = {0.5f, -1.5f};
    writer.add_array<float>("t.floats", ValueType::f32, floats);
    const uint8_t flags[] = {0, 1, 1};
    writer.add_array<uint8_t>("t.flags", ValueType::boolean, flags);
    const uint64_t dims_a[] = {3, 5}, dims_b[] = {32, 2, 1};
    writer.add_tensor("a.weight", quant::Type::f32, dims_a, bytes_of(weights).first(60));
    writer.add_tensor("b.weight", quant::Type::f32, dims_b, bytes_of(weights).first(256));
    return writer;
}

void check_sample(const File& file) {
    EXPECT_EQ(file.get_string("general.architecture").value(), "llama");
    EXPECT_EQ(file.get_uint("t.u8").value(), 200u);
    EXPECT_EQ(std::get<int64_t>(file.find("t.i8")->data), -100);
    EXPECT_EQ(file.get_uint("t.u16").value(), 60'000u);
    EXPECT_EQ(std::get<int64_t>(file.find("t.i16")->data), -30'000);
    EXPECT_EQ(file.get_uint("t.u32").value(), 4'000'000'000u);
    EXPECT_EQ(std::get<int64_t>(file.find("t.i32")->data), -2'000'000'000);
    EXPECT_EQ(file.get_uint("t.u64").value(), std::numeric_limits<uint64_t>::max());
    EXPECT_EQ(std::get<int64_t>(file.find("t.i64")->data), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(file.get_float("t.f32").value(), double{0.1f});
    EXPECT_EQ(file.get_float("t.f64").value(), 0.1);
    EXPECT_EQ(file.get_bool("t.bool").value(), true);
    EXPECT_EQ(file.get_string("t.empty").value(), "");
    EXPECT_EQ(file.get_strings("t.strings").value(), (std::vector<std::string_view>{"a", "", "\xc3\xa9\n"}));
    EXPECT_EQ(file.get_ints("t.ints").value(), (std::vector<int64_t>{-1, 0, 7}));
    EXPECT_EQ(file.get_floats("t.floats").value(), (std::vector<float>{0.5f, -1.5f}));
    ASSERT_EQ(file.tensors().size(), 2u);
    const TensorInfo* b = file.find_tensor("b.weight");
    ASSERT_TRUE(b);
    EXPECT_EQ(b, &file.tensors()[1]);
    EXPECT_EQ(b->n_dims, 3u);
    EXPECT_EQ(b->dims[0], 32u);
    EXPECT_EQ(b->dims[1], 2u);
    EXPECT_EQ(b->n_elements(), 64u);
    ASSERT_EQ(b->data.size(), 256u);
    EXPECT_EQ(std::memcmp(b->data.data(), weights.data(), 256), 0);
    EXPECT_EQ(b->offset % file.alignment(), 0u);
    EXPECT_EQ(file.find_tensor("c.weight"), nullptr);
    EXPECT_EQ(file.find("t"), nullptr);
}

TEST(RoundTrip, EveryTypeVersionAndAlignment) {
    for (const uint32_t version : {2u, 3u}) {
        for (const uint32_t alignment : {8u, 32u, 64u, 4096u, 65536u}) {
            const std::vector<std::byte> bytes = sample_writer(alignment, version).bytes();
            auto file = File::parse(bytes, "sample");
            ASSERT_TRUE(file.ok()) << file.error().message;
            EXPECT_EQ(file.value().version(), version);
            EXPECT_EQ(file.value().alignment(), alignment);
            check_sample(file.value());
        }
    }
}

TEST(RoundTrip, MetadataCopiedByValueIsTheSameBytes) {
    const std::vector<std::byte> bytes = sample_writer(32, 3).bytes();
    auto file = File::parse(bytes, "sample");
    ASSERT_TRUE(file.ok());
    Writer copy;
    for (const auto& [key, value] : file.value().metadata()) copy.add_value(key, value);
    for (const TensorInfo& tensor : file.value().tensors()) copy.add_tensor(tensor.name, tensor.type, std::span(tensor.dims, tensor.n_dims), tensor.data);
    EXPECT_EQ(copy.bytes(), bytes);
}

TEST(Access, WrongKindsAreNamed) {
    const std::vector<std::byte> bytes = sample_writer(32, 3).bytes();
    auto parsed = File::parse(bytes, "sample");
    ASSERT_TRUE(parsed.ok());
    const File& file = parsed.value();
    const auto message = [](const auto& result) { return result.error().message; };
    EXPECT_EQ(message(file.get_uint("absent.key")), "metadata key 'absent.key' is missing, expected an unsigned integer");
    EXPECT_EQ(message(file.get_uint("t.i8")),
              "metadata key 't.i8' at byte " + std::to_string(file.find("t.i8")->offset) + " is -100, expected 0 or more");
    EXPECT_NE(message(file.get_uint("t.empty")).find("is string, expected an unsigned integer"), std::string::npos);
    EXPECT_NE(message(file.get_float("t.u8")).find("is u8, expected a floating-point number"), std::string::npos);
    EXPECT_NE(message(file.get_string("t.strings")).find("is an array of string, expected a string"), std::string::npos);
    EXPECT_NE(message(file.get_strings("t.ints")).find("is an array of i32, expected an array of strings"), std::string::npos);
    EXPECT_NE(message(file.get_ints("t.floats")).find("expected an array of integers"), std::string::npos);
    EXPECT_NE(message(file.get_ints("t.big")).find("has element 1 = 9223372036854775808"), std::string::npos);
    EXPECT_NE(message(file.get_floats("t.ints")).find("expected an array of floating-point numbers"), std::string::npos);
    EXPECT_NE(message(file.get_bool("t.u8")).find("is u8, expected a bool"), std::string::npos);
    EXPECT_EQ(file.get_uint("absent.key").error().code, base::ErrorCode::bad_file);
}

TEST(RoundTrip, TheRealModel) {
    const char* path = std::getenv("HEARTH_TEST_MODEL");
    if (!path) GTEST_SKIP() << "HEARTH_TEST_MODEL is not set";
    auto view = base::system_files().open_mapped(path);
    ASSERT_TRUE(view.ok()) << view.error().message;
    auto file = File::parse(view.value()->bytes(), path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    // What gguf-dump of the PyPI package `gguf` prints for SmolLM2-135M-Instruct Q4_1.
    EXPECT_EQ(file.value().get_string("general.architecture").value(), "llama");
    EXPECT_EQ(file.value().tensors().size(), 272u);
    EXPECT_EQ(file.value().get_uint("llama.block_count").value(), 30u);
    EXPECT_EQ(file.value().get_strings("tokenizer.ggml.tokens").value().size(), 49'152u);
    EXPECT_EQ(file.value().find_tensor("blk.0.attn_q.weight")->dims[0], 576u);
    EXPECT_TRUE(view.value()->check_unchanged().ok());
    // Writing the same metadata and tensors again gives the same directory.
    Writer copy;
    for (const auto& [key, value] : file.value().metadata()) copy.add_value(key, value);
    for (const TensorInfo& tensor : file.value().tensors()) copy.add_tensor(tensor.name, tensor.type, std::span(tensor.dims, tensor.n_dims), tensor.data);
    const std::vector<std::byte> again = copy.bytes();
    ASSERT_EQ(again.size(), view.value()->bytes().size());
    EXPECT_EQ(std::memcmp(again.data(), view.value()->bytes().data(), again.size()), 0);
}

TEST(RoundTrip, ThePythonPackageReadsOurFile) {
    const char* python = std::getenv("HEARTH_PYTHON");
    if (!python) GTEST_SKIP() << "HEARTH_PYTHON is not set";
    const std::string path = testing::TempDir() + "hearth_gguf_" + std::to_string(getpid()) + ".gguf";
    ASSERT_TRUE(sample_writer(64, 3).write_file(path).ok());
    const std::string command = std::string(python) + " " TEST_DATA_DIR "/read_sample.py " + path;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    unlink(path.c_str());
}

TEST(Writer, FailuresAreErrors) {
    const Writer writer = sample_writer(32, 3);
    EXPECT_NE(writer.write_file("/nonexistent-folder/x.gguf").error().message.find("cannot create: No such file"), std::string::npos);
    // Every write of the sink may fail; each failure is reported.
    int allowed = 0;
    for (;; ++allowed) {
        int calls = 0;
        if (writer.write([&](std::span<const std::byte>) { return calls++ < allowed; }).ok()) break;
        ASSERT_LT(allowed, 100);
    }
    EXPECT_EQ(allowed, 5) << "header, and data and padding of two tensors";
    // A disk that takes no more (a file size limit stands for it): an error, and neither file is left behind.
    const std::string path = testing::TempDir() + "hearth_full_" + std::to_string(getpid()) + ".gguf";
    signal(SIGXFSZ, SIG_IGN);
    rlimit old{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    const rlimit small{100, old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto result = writer.write_file(path);
    setrlimit(RLIMIT_FSIZE, &old);
    ASSERT_FALSE(result.ok());
    EXPECT_NE(result.error().message.find("cannot write: File too large"), std::string::npos) << result.error().message;
    EXPECT_NE(access(path.c_str(), F_OK), 0);
    EXPECT_NE(access((path + ".partial").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace gguf
