// From a file to an engine through the file seam: no disk is touched.
#include <gtest/gtest.h>

#include <sstream>

#include "commands/inspect.h"
#include "commands/loaded_model.h"
#include "json/parse.h"
#include "support/fake_clock.h"
#include "support/fake_files.h"
#include "support/model_builder.h"

namespace {

commands::ServeOptions tiny_options() {
    commands::ServeOptions options;
    options.model_path = "tiny.gguf";
    options.context = 256;
    options.max_sequences = 3;
    options.threads = 2;
    return options;
}

class Load : public testing::Test {
  protected:
    Load() { files_.files["tiny.gguf"] = support::build_model({}); }
    auto load(const commands::ServeOptions& options, const commands::LoadHooks& hooks = {}) {
        return commands::load_model(options, clock_, [] {}, hooks, files_);
    }
    support::FakeClock clock_;
    support::FakeFiles files_;
};

TEST_F(Load, NothingRefersToTheFileAfterwards) {
    auto loaded = load(tiny_options());
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(files_.opened, 1);
    EXPECT_EQ(files_.open_now, 0);
    // The engine works with the file closed.
    engine::Request request;
    request.id = 1;
    request.tokens = {10, 11, 12};
    request.max_tokens = 5;
    request.ignore_eos = true;
    engine::Engine& engine = *loaded.value()->engine;
    ASSERT_TRUE(engine.submit(std::move(request)).ok());
    int tokens = 0;
    engine::Event event;
    while (engine.has_work()) {
        engine.step();
        while (engine.pop_event(event)) tokens += event.token >= 0;
    }
    EXPECT_EQ(tokens, 5);
}

TEST_F(Load, AFileThatChangedMeanwhileIsRefused) {
    files_.changed_while_read = true;
    auto loaded = load(tiny_options());
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code, base::ErrorCode::io);
    EXPECT_EQ(files_.open_now, 0);
}

TEST_F(Load, WhatIsWrongWithTheFileNamesIt) {
    support::ModelSpec spec;
    spec.without = {"llama.block_count"};
    files_.files["tiny.gguf"] = support::build_model(spec);
    auto loaded = load(tiny_options());
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().message.rfind("tiny.gguf: ", 0), 0u) << loaded.error().message;
    EXPECT_NE(loaded.error().message.find("llama.block_count"), std::string::npos);
    EXPECT_FALSE(load([] { auto o = tiny_options(); o.model_path = "other.gguf"; return o; }()).ok());
}

// What inspect says that serving would take is what serving takes.
TEST_F(Load, InspectAndServePlanTheSameMemory) {
    for (const char* kv_type : {"f16", "f32"}) {
        commands::ServeOptions serve = tiny_options();
        serve.kv_type = kv_type;
        serve.threads = 0;
        commands::Fit fit;
        auto loaded = load(serve, {[&](const commands::Fit& planned, const std::string&) { fit = planned; }, {}});
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        std::ostringstream out, err;
        ASSERT_EQ(commands::inspect_command({.path = "tiny.gguf", .json = true, .context = 256, .sequences = 3, .kv_type = kv_type}, out, err, files_), 0);
        auto parsed = json::parse(out.str());
        ASSERT_TRUE(parsed.ok());
        const json::Value& memory = *parsed.value().find("memory");
        const auto number = [&](const char* name) { return static_cast<uint64_t>(*memory.find(name)->as_int()); };
        EXPECT_EQ(number("weights_bytes"), fit.weights_bytes);
        EXPECT_EQ(number("activations_bytes") + number("scratch_bytes"), fit.work_bytes);
        EXPECT_EQ(number("kv_blocks"), fit.kv_blocks);  // auto: three full contexts, more could never be used
        EXPECT_EQ(number("kv_bytes"), fit.kv_bytes);
    }
}

}  // namespace
