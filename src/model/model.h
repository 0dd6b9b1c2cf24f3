// The forward pass of all families, written once over the verbs of kernels/backend.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "gguf/file.h"
#include "kernels/backend.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/weights.h"

namespace model {

struct ModelOptions {
    kernels::KvType kv_type = kernels::KvType::f16;
    uint32_t kv_blocks_count = 0;                            // physical blocks of 64 tokens to allocate
    uint32_t context_length = 0;                             // tokens of a sequence at most; 0 = the file's; more than the file's is refused
    uint32_t logit_rows_max = limits::sequences_running;     // rows of one step that may want logits
    uint32_t step_rows_max = limits::step_tokens;            // rows of one step
};

// What loading will take, known before anything is allocated; bytes.
struct MemoryPlan {
    uint64_t weights_bytes = 0;      // repacked
    uint64_t activations_bytes = 0;  // of the largest step, logits included
    uint64_t scratch_bytes = 0;      // the backend's own
    uint64_t kv_block_bytes = 0;     // one block of 64 tokens, all layers, K and V
    uint64_t fixed_bytes() const { return weights_bytes + activations_bytes + scratch_bytes; }
    uint64_t total_bytes(uint64_t kv_blocks_count) const { return fixed_bytes() + kv_blocks_count * kv_block_bytes; }
};

// Checks metadata and tensors as load() does and adds up; allocates nothing. kv_blocks_count is not used.
base::Result<MemoryPlan> plan(const gguf::File& file, const kernels::Backend& backend, const ModelOptions& options = {});

// Logits::data and forward() as batch.h says. Keeps no reference to the file.
class Model final : public ForwardPass {
  public:
    // Errors: of read_config and check_tensors; a NaN or infinite weight or scale by tensor name; io when the memory cannot be had;
    // invalid_argument for options. `progress` runs on the caller's thread.
    static base::Result<std::unique_ptr<Model>> load(const gguf::File& file, std::unique_ptr<kernels::Backend> backend,
                                                     const ModelOptions& options, const Progress& progress = {});

    uint32_t n_vocab() const override { return config_.n_vocab; }
    uint32_t context_length() const override { return context_length_; }
    uint32_t kv_blocks_count() const override { return options_.kv_blocks_count; }
    // Batch::logit_rows has at most ModelOptions::logit_rows_max entries, tokens at most step_rows_max (CHECKed).
    Logits forward(const Batch& batch) override;

    const Config& config() const { return config_; }
    const kernels::Backend& backend() const { return *backend_; }

  private:
    Model(const Config& config, const ModelOptions& options, std::unique_ptr<kernels::Backend> backend);
    void project(const LayerWeights& w, const LayerKind& kind, kernels::Tensor x);
    void add_feed_forward(const LayerWeights& w, kernels::Tensor x);
    kernels::Tensor half_input(kernels::Tensor x, kernels::Vector norm);
    void add_product(const kernels::Matrix& w, kernels::Tensor in, kernels::Vector bias, kernels::Vector post_norm, kernels::Tensor x);

    const Config config_;
    const ModelOptions options_;
    const uint32_t context_length_;
    std::unique_ptr<kernels::Backend> backend_;
    Weights weights_;
    std::vector<uint32_t> ropes_;  // as Config::ropes
    std::vector<kernels::Slice> slices_;  // (step_rows_max)

    // Activations, rows = tokens of the step.
    kernels::Tensor x_;          // (rows, n_embd) the residual stream
    kernels::Tensor normed_;     // (rows, n_embd)
    kernels::Tensor q_;          // (rows, heads * head_dim)
    kernels::Tensor k_, v_;      // (rows, kv_heads * head_dim)
    kernels::Tensor attended_;   // (rows, heads * head_dim)
    kernels::Tensor hidden_, spare_;  // (rows, n_ff)
    kernels::Tensor expert_scores_;   // (rows, n_experts)
    kernels::Tensor expert_x_, expert_y_;  // (rows, n_embd)
    // The rows whose logits are wanted.
    kernels::Tensor last_x_;         // (logit rows, n_embd)
    kernels::Tensor last_attended_;  // (logit rows, heads * head_dim)
    kernels::Tensor logits_;         // (logit rows, n_vocab)
};

}  // namespace model
