// What a llama-architecture file says about its shape, checked: every number that the forward pass divides by, indexes with
// or allocates from is inside its bounds afterwards.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "gguf/file.h"
#include "kernels/tensor.h"

namespace model {

struct Config {
    uint32_t n_layers = 0;
    uint32_t n_embd = 0;         // width of the residual stream
    uint32_t n_heads = 0;
    uint32_t n_kv_heads = 0;     // divides n_heads
    uint32_t head_dim = 0;
    uint32_t n_ff = 0;
    uint32_t n_vocab = 0;        // rows of the embedding matrix
    uint32_t context_length = 0;
    float norm_eps = 0;
    double rope_freq_base = 10000;
    double rope_freq_scale = 1;  // 1 / factor of linear scaling
    uint32_t n_rot = 0;          // leading dims of a head that rotate; even, <= head_dim

    uint32_t q_cols() const { return n_heads * head_dim; }
    uint32_t kv_cols() const { return n_kv_heads * head_dim; }
    kernels::KvShape kv_shape(kernels::KvType type) const { return {n_layers, n_kv_heads, head_dim, type}; }
};

// bad_file names the key, its byte offset and what was allowed; unsupported names what is understood and not built (another
// architecture, experts, a rope scaling other than linear, a sliding window). Pure.
base::Result<Config> read_config(const gguf::File& file);

}  // namespace model
