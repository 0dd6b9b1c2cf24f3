// Qwen2 (and 2.5): biases at q, k and v. Qwen3: none, but norms of each head of q and k. Qwen3 MoE: experts in every layer.
#include "model/families/families.h"
#include "model/rope.h"

namespace model {

void read_qwen2(KeyReader& reader, Config& config) {
    config.biases = true;
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
}

void read_qwen3(KeyReader& reader, Config& config) {
    config.qk_norm = QkNorm::head;
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
}

void read_qwen3moe(KeyReader& reader, Config& config) {
    read_qwen3(reader, config);
    read_experts(reader, config);
    if (config.n_experts == 0 && !reader.error()) reader.fail(reader.bad("expert_count", "is missing or 0; this architecture has experts"));
}

}  // namespace model
