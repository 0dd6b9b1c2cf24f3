// The tensors of a model file: which there must be, with which shape, and their upload.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/backend.h"
#include "model/config.h"

namespace model {

// Vectors that a family or a file does not have have n = 0.
struct LayerWeights {
    kernels::Vector attn_norm, ffn_norm;            // (n_embd)
    kernels::Vector post_attn_norm, post_ffn_norm;  // (n_embd)
    kernels::Vector q_norm, k_norm;                 // (head_dim), or (heads * head_dim), (kv_heads * head_dim)
    kernels::Matrix q, k, v;                        // (heads * head_dim, n_embd), (kv_heads * head_dim, n_embd)
    kernels::Vector q_bias, k_bias, v_bias, o_bias;
    kernels::Matrix o;                              // (n_embd, heads * head_dim)
    kernels::Matrix gate, up;                       // (n_ff, n_embd)
    kernels::Matrix down;                           // (n_embd, n_ff)
    kernels::Matrix router;                         // (n_experts, n_embd)
    std::vector<kernels::Backend::Expert> experts;  // instead of gate, up and down
};

struct Weights {
    kernels::Matrix embeddings;                   // (n_vocab, n_embd)
    kernels::Matrix output;                       // (n_vocab, n_embd); the embeddings where the file ties them
    kernels::Vector output_norm;                  // (n_embd)
    std::vector<LayerWeights> layers;
};

// done and total in bytes of the file's tensors; called after each tensor, total > 0.
using Progress = std::function<void(uint64_t done, uint64_t total)>;

// Missing tensors, wrong shapes, tensors that nothing reads: bad_file by name, at most faults_max of them. Pure.
std::vector<base::Error> tensor_faults(const gguf::File& file, const Config& config, size_t faults_max);
// The first of them, before anything is uploaded.
base::Result<void> check_tensors(const gguf::File& file, const Config& config);

// Bytes that upload_weights() takes from the backend. check_tensors() has passed.
uint64_t weight_bytes(const gguf::File& file, const Config& config, const kernels::Backend& backend);

// check_tensors() has passed and the backend has reserved weight_bytes().
base::Result<Weights> upload_weights(const gguf::File& file, const Config& config, kernels::Backend& backend, const Progress& progress);

}  // namespace model
