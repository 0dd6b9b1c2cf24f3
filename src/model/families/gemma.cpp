// Gemma 1 to 3: embeddings times sqrt(n_embd), gelu gates; 2 and 3 with norms on both sides of each half of a layer and
// alternating windows; 2 with soft caps, 3 with norms of q and k and another rope base in its windows. (Norm weights are stored
// with their 1 added.) Gemma 2: arXiv 2408.00118. Gemma 3: arXiv 2503.19786.
#include <cmath>

#include "model/families/families.h"
#include "model/rope.h"

namespace model {
namespace {

void common(KeyReader& reader, Config& config) {
    config.activation = kernels::Activation::gelu_tanh;
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    config.logit_soft_cap = static_cast<float>(reader.real("final_logit_softcapping", 0, 1e6, 0.0));
}

// The 27B models of both generations divide by the width of a head as the residual stream has it, and GGUF has no key for it.
void scale_of_27b(Config& config, uint32_t n_layers) {
    if (config.n_layers == n_layers) config.attention_scale = 1 / std::sqrt(static_cast<float>(config.n_embd / config.n_heads));
}

}  // namespace

void read_gemma(KeyReader& reader, Config& config) {
    common(reader, config);
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
}

void read_gemma2(KeyReader& reader, Config& config) {
    common(reader, config);
    config.post_norms = true;
    config.attention_soft_cap = static_cast<float>(reader.real("attn_logit_softcapping", 0, 1e6, 50.0));
    if (!reader.has("final_logit_softcapping")) config.logit_soft_cap = 30;
    read_windows(reader, config, 2, 4096);
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 10000);
    scale_of_27b(config, 46);
}

void read_gemma3(KeyReader& reader, Config& config) {
    common(reader, config);
    config.post_norms = true;
    config.qk_norm = QkNorm::head;
    add_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base", 1'000'000);
    read_windows_with_rope(reader, config, 6, 10000);
    scale_of_27b(config, 62);
}

}  // namespace model
