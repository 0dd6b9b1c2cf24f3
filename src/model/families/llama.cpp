// Llama 1 to 3 and what is built like it (Mistral, TinyLlama, SmolLM2, Mixtral), SmolLM3, Granite. Their converters reorder the
// rows of q and k, so that neighbours turn together.
#include "base/limits.h"
#include "model/families/families.h"
#include "model/rope.h"

namespace model {

void read_llama(KeyReader& reader, Config& config) {
    config.biases = true;
    read_windows(reader, config, 1, 0);
    read_experts(reader, config);  // Mixtral: the softmax is over the chosen ones, which is the same as dividing by their sum
    add_rope(reader, config, kernels::RopePairs::neighbours, "rope.freq_base", 10000);
}

// Every fourth layer knows no positions.
void read_smollm3(KeyReader& reader, Config& config) {
    add_rope(reader, config, kernels::RopePairs::neighbours, "rope.freq_base", 10000);
    for (uint32_t i = 3; i < config.n_layers; i += 4) config.layers[i].rope = -1;
}

// Four scales; logits are divided by theirs.
void read_granite(KeyReader& reader, Config& config) {
    add_rope(reader, config, kernels::RopePairs::neighbours, "rope.freq_base", 10000);
    config.embedding_scale = static_cast<float>(reader.real("embedding_scale", 1e-6, 1e6, 1.0));
    config.residual_scale = static_cast<float>(reader.real("residual_scale", 1e-6, 1e6, 1.0));
    config.attention_scale = static_cast<float>(reader.real("attention.scale", 1e-9, 1e6, config.attention_scale));
    config.logit_scale = static_cast<float>(1 / reader.real("logit_scale", 1e-6, 1e6, 1.0));
}

}  // namespace model
