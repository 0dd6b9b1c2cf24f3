// Split models through the file seam: what belongs together is one model, and what does not is refused by the name of the
// file at fault.
#include "gguf/model_files.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/limits.h"
#include "gguf/writer.h"
#include "support/fake_files.h"

namespace gguf {
namespace {

struct Part {
    int number = -1, count = -1, tensors = -1;  // of split.*; -1: no such key
    std::vector<std::string> names;             // of its tensors, each of 4 floats
    std::function<void(Writer&)> more;
};

std::vector<std::byte> build(const Part& part) {
    static constexpr float values[4] = {1, 2, 3, 4};
    Writer writer;
    if (part.more) part.more(writer);
    // Types as gguf-split writes them.
    if (part.number >= 0) writer.add_u16("split.no", static_cast<uint16_t>(part.number));
    if (part.count >= 0) writer.add_u16("split.count", static_cast<uint16_t>(part.count));
    if (part.tensors >= 0) writer.add_i32("split.tensors.count", part.tensors);
    const uint64_t dims[] = {4};
    for (const std::string& name : part.names) writer.add_tensor(name, quant::Type::f32, dims, std::as_bytes(std::span(values)));
    return writer.bytes();
}

class SplitModel : public testing::Test {
  protected:
    SplitModel() {
        parts_ = {{0, 3, 4, {"a", "b"}, [](Writer& w) { w.add_string("general.architecture", "llama"); }}, {1, 3, 4, {"c"}, {}}, {2, 3, 4, {"d"}, {}}};
    }
    static std::string name(size_t part) { return "dir/m-0000" + std::to_string(part + 1) + "-of-00003.gguf"; }
    base::Result<ModelFiles> open(const std::string& path = name(0)) {
        for (size_t i = 0; i < parts_.size(); ++i) files_.files[name(i)] = build(parts_[i]);
        for (const std::string& path_gone : gone_) files_.files.erase(path_gone);
        return ModelFiles::open(path, files_);
    }
    std::string refusal(const std::string& path = name(0)) {
        auto opened = open(path);
        EXPECT_FALSE(opened.ok());
        EXPECT_EQ(files_.open_now, opened.ok() ? 3 : 0);
        return opened.ok() ? "" : opened.error().message;
    }
    support::FakeFiles files_;
    std::vector<Part> parts_;
    std::vector<std::string> gone_;
};

TEST_F(SplitModel, IsOneModel) {
    auto opened = open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ModelFiles model = std::move(opened).value();  // views survive a move
    EXPECT_EQ(model.paths(), (std::vector<std::string>{name(0), name(1), name(2)}));
    EXPECT_EQ(model.file().get_string("general.architecture").value(), "llama");
    ASSERT_EQ(model.file().tensors().size(), 4u);
    uint64_t bytes = 0;
    for (const auto& [path, content] : files_.files) bytes += content.size();
    EXPECT_EQ(model.file().size_bytes(), bytes);
    const TensorInfo* c = model.file().find_tensor("c");
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->data.size(), 16u);
    // The offset counts from the start of the part that it is in.
    const std::vector<std::byte>& second = files_.files[name(1)];
    EXPECT_TRUE(std::equal(c->data.begin(), c->data.end(), second.begin() + static_cast<std::ptrdiff_t>(c->offset)));
    EXPECT_EQ(place(*c), "byte " + std::to_string(c->offset) + " of m-00002-of-00003.gguf");
    EXPECT_EQ(place(*model.file().find_tensor("a")), "byte " + std::to_string(model.file().find_tensor("a")->offset) + " of m-00001-of-00003.gguf");
    EXPECT_TRUE(model.check_unchanged().ok());
    model.release(c->data);
    files_.changed_while_read = true;
    EXPECT_FALSE(model.check_unchanged().ok());
    EXPECT_EQ(files_.opened, 3);
}

TEST_F(SplitModel, APartMayHaveNoTensors) {
    parts_[0].names = {};
    for (Part& part : parts_) part.tensors = 2;
    auto opened = open();
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(place(opened.value().file().tensors()[0]).substr(0, 5), "byte ");
    // The total is not in every tool's output.
    for (Part& part : parts_) part.tensors = -1;
    EXPECT_TRUE(open().ok());
}

TEST_F(SplitModel, OneFileIsNotSplit) {
    for (const Part& part : {Part{-1, -1, -1, {"a"}, {}}, Part{0, 1, 1, {"a"}, {}}, Part{-1, 1, -1, {"a"}, {}}}) {
        files_.files["m.gguf"] = build(part);
        auto opened = ModelFiles::open("m.gguf", files_);
        ASSERT_TRUE(opened.ok()) << opened.error().message;
        EXPECT_EQ(opened.value().paths().size(), 1u);
        const TensorInfo& a = opened.value().file().tensors()[0];
        EXPECT_EQ(place(a), "byte " + std::to_string(a.offset));
    }
}

TEST_F(SplitModel, AMiddlePartNamesTheFirst) {
    EXPECT_EQ(refusal(name(1)),
              "dir/m-00002-of-00003.gguf: is part 2 of 3 of a split model (metadata key 'split.count' at byte 69); give the first part, "
              "dir/m-00001-of-00003.gguf, which has the metadata");
    files_.files["x.gguf"] = build(parts_[2]);
    EXPECT_EQ(refusal("x.gguf"), "x.gguf: is part 3 of 3 of a split model (metadata key 'split.count' at byte 69); give the first part, which has the metadata");
}

TEST_F(SplitModel, AMissingPartIsNamed) {
    gone_ = {name(2)};
    EXPECT_EQ(refusal(), "dir/m-00003-of-00003.gguf: no such file (part 3 of 3 of dir/m-00001-of-00003.gguf)");
    files_.files["x.gguf"] = build(parts_[0]);
    EXPECT_NE(refusal("x.gguf").find("its name must end in -00001-of-00003.gguf"), std::string::npos);
}

TEST_F(SplitModel, ATruncatedPartNamesItself) {
    ASSERT_TRUE(open().ok());
    std::vector<std::byte> cut = files_.files[name(1)];
    cut.resize(cut.size() - 24);  // 16 bytes of data, padded to 32
    files_.files[name(1)] = cut;
    auto opened = ModelFiles::open(name(0), files_);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().message.rfind("dir/m-00002-of-00003.gguf: offset of 'c' at byte ", 0), 0u) << opened.error().message;
}

TEST_F(SplitModel, WhatDoesNotBelong) {
    const std::vector<Part> sound = parts_;
    const auto with = [&](auto&& change) {
        parts_ = sound;
        change();
        return refusal();
    };
    EXPECT_EQ(with([&] { parts_[1].number = 2; }), "dir/m-00002-of-00003.gguf: metadata key 'split.no' at byte 44 is 2, allowed is 1 by the file's name");
    EXPECT_EQ(with([&] { parts_[2].count = 4; }), "dir/m-00003-of-00003.gguf: metadata key 'split.count' at byte 69 is 4, allowed is 3 as in m-00001-of-00003.gguf");
    EXPECT_EQ(with([&] { parts_[1].tensors = 9; }),
              "dir/m-00002-of-00003.gguf: metadata key 'split.tensors.count' at byte 102 is 9, allowed is 4 as in m-00001-of-00003.gguf");
    EXPECT_EQ(with([&] { parts_[1].number = -1; }),
              "dir/m-00002-of-00003.gguf: metadata key 'split.no' is missing, expected that of part 2 of 3");
    EXPECT_NE(with([&] { parts_[1].names = {}; }).find("dir/m-00001-of-00003.gguf: metadata key 'split.tensors.count' at byte "), std::string::npos);
    EXPECT_NE(with([&] { parts_[1].names = {}; }).find(" is 4, but the 3 parts have 3 tensors"), std::string::npos);
    EXPECT_EQ(with([&] { parts_[2].names = {"b"}; }),
              "dir/m-00001-of-00003.gguf: tensor 'b' is in m-00001-of-00003.gguf and in m-00003-of-00003.gguf, allowed is each name once");
    // Metadata of another model, and the same metadata again.
    EXPECT_NE(with([&] { parts_[1].more = [](Writer& w) { w.add_string("general.architecture", "qwen2"); }; })
                  .find("m-00002-of-00003.gguf: metadata key 'general.architecture' at byte 56 differs from that in m-00001-of-00003.gguf"), std::string::npos);
    EXPECT_NE(with([&] { parts_[1].more = [](Writer& w) { w.add_u32("x", 1); }; }).find("is not in m-00001-of-00003.gguf"), std::string::npos);
    parts_ = sound;
    parts_[1].more = parts_[0].more;
    EXPECT_TRUE(open().ok());
}

TEST(Split, Keys) {
    const auto check = [](const Part& part, bool as_string = false) -> std::string {
        Part with = part;
        if (as_string) with.more = [](Writer& writer) { writer.add_string("split.count", "2"); };
        const std::vector<std::byte> bytes = build(with);
        auto file = File::parse(bytes, "part");
        EXPECT_TRUE(file.ok());
        auto split = read_split(file.value());
        return split.ok() ? std::to_string(split.value().part) + " of " + std::to_string(split.value().count) : split.error().message;
    };
    EXPECT_EQ(check({}), "0 of 1");
    EXPECT_EQ(check({4, 5, -1, {}, {}}), "4 of 5");
    EXPECT_EQ(check({0, 0, -1, {}, {}}), "metadata key 'split.count' at byte 69 is 0, allowed are 1 to 65535");
    EXPECT_EQ(check({65'535, 65'535, -1, {}, {}}), "metadata key 'split.no' at byte 44 is 65535, allowed are 0 to 65534");
    EXPECT_EQ(check({1, 1, -1, {}, {}}), "metadata key 'split.no' at byte 44 is 1, allowed are 0 to 0");
    EXPECT_EQ(check({1, -1, -1, {}, {}}), "metadata key 'split.no' at byte 44 is 1, allowed are 0 to 0");
    EXPECT_EQ(check({0, -1, -1, {}, {}}, true), "metadata key 'split.count' at byte 47 is string, expected an unsigned integer");
}

TEST(Split, MorePartsThanTheLimit) {
    support::FakeFiles files;
    const std::string path = split_path("m", 0, limits::gguf_split_parts + 1);
    files.files[path] = build({0, static_cast<int>(limits::gguf_split_parts) + 1, -1, {}, {}});
    auto opened = ModelFiles::open(path, files);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.error().message.find("is part 1 of 513 of a split model"), std::string::npos);
    EXPECT_NE(opened.error().message.find("allowed are 512 parts"), std::string::npos);
    EXPECT_EQ(files.opened, 1);
}

TEST(Split, Names) {
    EXPECT_EQ(split_path("a/b", 1, 20), "a/b-00002-of-00020.gguf");
    EXPECT_EQ(split_stem("a/b-00002-of-00020.gguf"), "a/b");
    for (const char* other : {"a/b.gguf", "a/b-0002-of-00020.gguf", "a/b-0000x-of-00020.gguf", "-00001-of-00002.gguf", "a/-00001-of-00002.gguf", ""})
        EXPECT_FALSE(split_stem(other)) << other;
}

}  // namespace
}  // namespace gguf
