// A model file to a running engine's parts: what `serve`, `run` and `bench` share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/result.h"
#include "commands/serve.h"
#include "engine/engine.h"
#include "model/model.h"
#include "server/served_model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace commands {

// How the memory is divided; bytes. Printed before loading and shown when a model doesn't fit.
struct Fit {
    uint64_t weights_bytes = 0, work_bytes = 0;  // repacked weights; activations, logits and the backend's scratch
    uint64_t kv_bytes = 0, kv_token_bytes = 0;
    uint64_t available_bytes = 0;  // before loading
    uint32_t kv_blocks = 0;
    uint32_t context_length = 0;  // tokens of one sequence
    uint64_t kv_tokens() const { return uint64_t{kv_blocks} * limits::kv_block_tokens; }
    uint32_t full_contexts() const;  // that the KV holds at once
};

struct LoadedModel {
    // In order of construction: each refers to those above it.
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;  // null: the file has none, or template_problem says why
    std::string template_problem;
    std::unique_ptr<model::Model> model;
    std::unique_ptr<engine::Engine> engine;  // no thread yet
    server::ServedModel served;
    Fit fit;
    std::string hardware;  // "AMD EPYC 9B14, avx512, 2 threads"
};

// Where a caller may look in: the plan is made and nothing is allocated yet; then bytes done of the total.
struct LoadHooks {
    std::function<void(const Fit&, const std::string& hardware)> planned;
    model::Progress progress;
};

// The file is mapped during this call only. `wake` is the engine's; `clock` outlives the result. Errors: whatever file,
// tokenizer, backend and model refuse; invalid_argument, with both numbers, when not one full context fits the memory or
// the given KV budget. Any thread; the caller's thread does the work.
base::Result<std::unique_ptr<LoadedModel>> load_model(const ServeOptions& options, const base::Clock& clock, std::function<void()> wake,
                                                      const LoadHooks& hooks = {},
                                                      const base::FileSystem& files = base::system_files());

// The KV budget of a plan, in blocks. Pure; `kv_budget` as ServeOptions has it.
base::Result<uint32_t> choose_kv_blocks(const std::string& kv_budget, const model::MemoryPlan& plan, uint64_t available_bytes,
                                        uint32_t context_length, uint32_t sequences);

}  // namespace commands
