// What a model file says about its shape and its graph, checked: every number that the forward pass divides by, indexes with
// or allocates from is inside its bounds afterwards. The graph of model.cpp is one; what a family does differently is data
// here, filled in by its file in families/.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/tensor.h"

namespace model {

// RMS norm of queries and keys before they turn: of each head by (head_dim) weights, or of the whole row.
enum class QkNorm : uint8_t { none, head, row };

struct LayerKind {
    uint32_t window = 0;  // > 0: attention sees itself and the window - 1 positions before it
    int32_t rope = 0;     // index into Config::ropes; -1: positions are not rotated
};

struct Config {
    std::string architecture;
    uint32_t n_layers = 0;
    uint32_t n_embd = 0;         // width of the residual stream
    uint32_t n_heads = 0;
    uint32_t n_kv_heads = 0;     // divides n_heads
    uint32_t head_dim = 0;
    uint32_t n_ff = 0;           // of a layer, or of one expert
    uint32_t n_vocab = 0;        // rows of the embedding matrix
    uint32_t context_length = 0;
    float norm_eps = 0;
    uint32_t n_rot = 0;          // leading dims of a head that rotate; even, <= head_dim

    // --- what families differ in ---
    bool pre_norms = true;       // attn_norm and ffn_norm before the two halves of a layer
    bool post_norms = false;     // post_attention_norm and post_ffw_norm behind them, before the sum
    QkNorm qk_norm = QkNorm::none;
    bool biases = false;         // attn_q, attn_k, attn_v and attn_output may have one
    bool fused_qkv = false;      // one tensor attn_qkv: the rows of q, then k, then v
    bool fused_gate_up = false;  // one tensor ffn_up: the rows of gate, then up
    kernels::Activation activation = kernels::Activation::silu;
    float embedding_scale = 1;
    float residual_scale = 1;    // of what each half of a layer adds
    float attention_scale = 1;
    float attention_soft_cap = 0, logit_soft_cap = 0;  // 0: none
    float logit_scale = 1;       // logits are multiplied by it
    uint32_t n_experts = 0;      // 0: an ordinary feed-forward
    uint32_t n_experts_used = 0;
    bool normalise_experts = true;
    std::vector<LayerKind> layers;                     // (n_layers)
    std::vector<kernels::RopeSpec> ropes, long_ropes;  // long ones instead for contexts over `original_context`; often none
    uint32_t original_context = 0;

    uint32_t q_cols() const { return n_heads * head_dim; }
    uint32_t kv_cols() const { return n_kv_heads * head_dim; }
    kernels::KvShape kv_shape(kernels::KvType type) const { return {n_layers, n_kv_heads, head_dim, type}; }
};

// bad_file names the key, its byte offset and what was allowed; unsupported names what is understood and not built: another
// architecture, a rope scaling, a key that changes the result and that this family does not have. Pure.
base::Result<Config> read_config(const gguf::File& file);

}  // namespace model
