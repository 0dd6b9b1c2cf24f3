#include "model/families/families.h"

#include "base/limits.h"
#include "model/rope.h"

namespace model {
namespace {

constexpr Family table[] = {
    {"llama", read_llama},   {"smollm3", read_smollm3}, {"granite", read_granite},
    {"qwen2", read_qwen2},   {"qwen3", read_qwen3},     {"qwen3moe", read_qwen3moe},
    {"gemma", read_gemma},   {"gemma2", read_gemma2},   {"gemma3", read_gemma3},
    {"phi3", read_phi3},     {"olmo2", read_olmo2},
};

}  // namespace

std::span<const Family> families() { return table; }

void read_experts(KeyReader& reader, Config& config) {
    config.n_experts = reader.number("expert_count", 0, limits::model_experts, 0);
    if (config.n_experts == 0 || reader.error()) return;
    config.n_experts_used = reader.number("expert_used_count", 1, std::min(config.n_experts, kernels::experts_used_max));
    config.n_ff = reader.number("expert_feed_forward_length", 1, limits::model_width, config.n_ff);
}

bool read_windows(KeyReader& reader, Config& config, uint32_t period, uint32_t missing) {
    const uint32_t window = reader.number("attention.sliding_window", 0, limits::model_context_tokens, missing);
    constexpr std::string_view pattern = "attention.sliding_window_pattern";
    reader.mark_read(pattern);
    if (window == 0 || reader.error()) return false;
    const gguf::Value* value = reader.file().find(reader.key(pattern));
    if (value && std::holds_alternative<gguf::Array>(value->data)) {
        base::Result<std::vector<int64_t>> flags = reader.file().get_ints(reader.key(pattern));
        if (!flags) {
            reader.fail(flags.take_error());
        } else if (flags.value().size() != config.n_layers) {
            reader.fail(reader.bad(pattern, base::cat("has ", flags.value().size(), " flags; allowed: one for each of ", config.n_layers, " layers")));
        } else {
            for (uint32_t i = 0; i < config.n_layers; ++i) config.layers[i].window = flags.value()[i] ? window : 0;
        }
        return true;
    }
    if (value) period = reader.number(pattern, 1, limits::model_layers);
    for (uint32_t i = 0; i < config.n_layers; ++i) config.layers[i].window = period == 1 || i % period < period - 1 ? window : 0;
    return true;
}

void read_windows_with_rope(KeyReader& reader, Config& config, uint32_t period, double base_missing) {
    if (!read_windows(reader, config, period, 0)) return;
    const auto rope = static_cast<int32_t>(config.ropes.size());
    add_unscaled_rope(reader, config, kernels::RopePairs::halves, "rope.freq_base_swa", base_missing);
    for (LayerKind& layer : config.layers)
        if (layer.window > 0) layer.rope = rope;
}

}  // namespace model
