#include "model/config.h"

#include <cmath>
#include <string>

#include "base/limits.h"
#include "base/message.h"
#include "model/families/families.h"
#include "model/key_reader.h"

namespace model {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::Result;

// A smaller one would be 0 as a float: NaN in every logit.
constexpr double smallest_eps = 1e-30;

// Keys that change what a model computes: one that the file has and its family did not read is refused rather than ignored.
constexpr std::string_view changes_the_result[] = {
    "logit_scale", "embedding_scale", "residual_scale", "attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias",
    "attn_logit_softcapping", "final_logit_softcapping", "rope.dimension_sections", "attention.sliding_window", "expert_count",
    "expert_shared_count", "expert_shared_feed_forward_length", "expert_weights_scale", "expert_gating_func", "leading_dense_block_count",
    "attention.q_lora_rank", "attention.kv_lora_rank", "rope.scaling.yarn_log_multiplier", "rope.scaling.type", "rope.scaling.factor",
    "attention.temperature_length", "attention.key_length_swa", "interleave_moe_layer_step", "attention.shared_kv_layers", "use_parallel_residual",
};

}  // namespace

Result<Config> read_config(const gguf::File& file) {
    Result<std::string_view> architecture = file.get_string("general.architecture");
    if (!architecture) return architecture.take_error();
    const Family* family = nullptr;
    std::string known;
    for (const Family& row : families()) {
        if (row.name == architecture.value()) family = &row;
        known += cat(known.empty() ? "" : ", ", row.name);
    }
    if (!family)
        return Error{ErrorCode::unsupported,
                     cat("metadata key 'general.architecture' at byte ", file.find("general.architecture")->offset, " is '",
                         base::printable(architecture.value().substr(0, 64)), "'; allowed: ", known),
                     ""};

    KeyReader reader(file, std::string(architecture.value()));
    Config config;
    config.architecture = architecture.value();
    config.n_layers = reader.number("block_count", 1, limits::model_layers);
    config.context_length = reader.number("context_length", 1, limits::model_context_tokens);
    config.n_embd = reader.number("embedding_length", 1, limits::model_width);
    config.n_ff = reader.number("feed_forward_length", 1, limits::model_width);
    config.n_heads = reader.number("attention.head_count", 1, limits::model_heads);
    config.n_kv_heads = reader.number("attention.head_count_kv", 1, limits::model_heads, config.n_heads);
    config.norm_eps = static_cast<float>(reader.real("attention.layer_norm_rms_epsilon", smallest_eps, 1));
    if (reader.error()) return *reader.error();

    if (config.n_kv_heads > config.n_heads || config.n_heads % config.n_kv_heads != 0)
        return reader.bad("attention.head_count_kv", cat("is ", config.n_kv_heads, "; allowed: divisors of attention.head_count, ", config.n_heads));
    if (!reader.has("attention.key_length") && config.n_embd % config.n_heads != 0)
        return reader.bad("attention.head_count", cat("is ", config.n_heads, "; allowed: divisors of embedding_length, ", config.n_embd));
    config.head_dim = reader.number("attention.key_length", 1, limits::model_head_dim, config.n_embd / config.n_heads);
    const uint32_t value_dim = reader.number("attention.value_length", 1, limits::model_head_dim, config.head_dim);
    if (reader.error()) return *reader.error();
    if (config.head_dim > limits::model_head_dim)
        return reader.bad("attention.head_count", cat("makes heads of ", config.head_dim, " dims; allowed: 1 to ", limits::model_head_dim));
    if (value_dim != config.head_dim)
        return reader.unsupported("attention.value_length", cat("is ", value_dim, "; supported: equal to the key length, ", config.head_dim));
    if (uint64_t{config.n_heads} * config.head_dim > limits::model_width)
        return reader.bad("attention.head_count", cat("is ", config.n_heads, " with heads of ", config.head_dim, " dims; allowed: at most ", limits::model_width, " in all"));

    config.n_rot = reader.number("rope.dimension_count", 1, config.head_dim, config.head_dim);
    if (reader.error()) return *reader.error();
    if (config.n_rot % 2 != 0) return reader.bad("rope.dimension_count", cat("is ", config.n_rot, "; allowed: even numbers up to ", config.head_dim));
    config.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
    config.layers.resize(config.n_layers);
    family->read(reader, config);
    if (reader.error()) return *reader.error();
    for (std::string_view name : changes_the_result)
        if (reader.has(name) && !reader.was_read(name)) {
            // A number that says "none" says nothing.
            const Result<double> real = file.get_float(reader.key(name));
            const Result<uint64_t> integer = file.get_uint(reader.key(name));
            const bool zero = (real && real.value() == 0) || (integer && integer.value() == 0);
            if (!zero) return reader.unsupported(name, cat("is not supported for the architecture ", config.architecture));
        }

    const gguf::TensorInfo* embeddings = file.find_tensor("token_embd.weight");
    if (!embeddings) return Error{ErrorCode::bad_file, "tensor 'token_embd.weight' is missing", ""};
    if (embeddings->dims[1] < 1 || embeddings->dims[1] > limits::vocab_tokens)
        return Error{ErrorCode::bad_file, cat("tensor 'token_embd.weight' has ", embeddings->dims[1], " rows; allowed: 1 to ", limits::vocab_tokens), ""};
    config.n_vocab = static_cast<uint32_t>(embeddings->dims[1]);
    const uint32_t claimed = reader.number("vocab_size", 1, limits::vocab_tokens, config.n_vocab);
    if (reader.error()) return *reader.error();
    if (claimed != config.n_vocab)
        return reader.bad("vocab_size", cat("is ", claimed, "; tensor 'token_embd.weight' has ", config.n_vocab, " rows"));
    if (const gguf::Value* tokens = file.find("tokenizer.ggml.tokens")) {
        const auto* array = std::get_if<gguf::Array>(&tokens->data);
        if (array && array->count != config.n_vocab)
            return Error{ErrorCode::bad_file, cat("metadata key 'tokenizer.ggml.tokens' at byte ", tokens->offset, " has ", array->count,
                                                    " tokens; tensor 'token_embd.weight' has ", config.n_vocab, " rows"), ""};
    }
    return config;
}

}  // namespace model
