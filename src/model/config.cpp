#include "model/config.h"

#include <cstdio>
#include <optional>
#include <string>

#include "base/limits.h"
#include "base/message.h"

namespace model {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::Result;

// Smaller ones would be 0 as a float, or their reciprocal and powers infinite: NaN in every logit.
constexpr double smallest_eps = 1e-30, smallest_factor = 1e-6, smallest_base = 1e-6;

std::string short_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

// Reads keys of the architecture; the first error sticks, so that the caller checks once.
class Reader {
  public:
    Reader(const gguf::File& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

    bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }
    const std::optional<Error>& error() const { return error_; }

    // An integer in [low, high]; `missing` when the key is absent, an error without one.
    uint32_t number(std::string_view name, uint64_t low, uint64_t high, std::optional<uint64_t> missing = {}) {
        if (missing && !has(name)) return static_cast<uint32_t>(*missing);
        Result<uint64_t> value = file_.get_uint(key(name));
        if (!value) return fail(value.take_error());
        if (value.value() < low || value.value() > high) return fail(bad(name, cat("is ", value.value(), "; allowed: ", low, " to ", high)));
        return static_cast<uint32_t>(value.value());
    }

    // A finite number in [low, high].
    double real(std::string_view name, double low, double high, std::optional<double> missing = {}) {
        if (missing && !has(name)) return *missing;
        Result<double> value = file_.get_float(key(name));
        if (!value) return fail(value.take_error());
        if (!(value.value() >= low && value.value() <= high))  // false for NaN
            return fail(bad(name, cat("is ", short_text(value.value()), "; allowed: ", short_text(low), " to ", short_text(high))));
        return value.value();
    }

    uint32_t fail(Error error) {
        if (!error_) error_ = std::move(error);
        return 1;  // harmless wherever it is used before the caller looks
    }
    Error bad(std::string_view name, std::string_view problem) const {
        const gguf::Value* value = file_.find(key(name));
        return {ErrorCode::bad_file, cat("metadata key '", key(name), "'", value ? cat(" at byte ", value->offset) : std::string(), " ", problem), ""};
    }
    Error unsupported(std::string_view name, std::string_view problem) const {
        Error error = bad(name, problem);
        error.code = ErrorCode::unsupported;
        return error;
    }

  private:
    std::string key(std::string_view name) const { return prefix_ + "." + std::string(name); }
    const gguf::File& file_;
    const std::string prefix_;
    std::optional<Error> error_;
};

// Keys that change the result and that this forward pass does not know: refused rather than ignored.
constexpr std::string_view unknown_mathematics[] = {
    "logit_scale", "embedding_scale", "residual_scale", "attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias",
    "attn_logit_softcapping", "final_logit_softcapping", "rope.dimension_sections",
};

void read_rope_scaling(const gguf::File& file, Reader& reader, Config& config) {
    double factor = 1;
    bool linear = false;
    if (reader.has("rope.scaling.type")) {
        Result<std::string_view> type = file.get_string("llama.rope.scaling.type");
        if (!type) {
            reader.fail(type.take_error());
            return;
        }
        linear = type.value() == "linear";
        if (!linear && type.value() != "none") {
            reader.fail(reader.unsupported("rope.scaling.type", cat("is '", base::printable(type.value()), "'; supported: none, linear (and llama 3 factors in rope_freqs.weight)")));
            return;
        }
    }
    if (linear || !reader.has("rope.scaling.type")) {
        // Old files have only rope.scale_linear, older ones rope.scaling.factor without a type.
        factor = reader.real("rope.scaling.factor", smallest_factor, 1e6, reader.real("rope.scale_linear", smallest_factor, 1e6, 1.0));
    }
    config.rope_freq_scale = 1 / factor;
}

}  // namespace

Result<Config> read_config(const gguf::File& file) {
    Result<std::string_view> architecture = file.get_string("general.architecture");
    if (!architecture) return architecture.take_error();
    if (architecture.value() != "llama")
        return Error{ErrorCode::unsupported,
                     cat("metadata key 'general.architecture' at byte ", file.find("general.architecture")->offset, " is '",
                         base::printable(architecture.value().substr(0, 64)), "'; allowed: llama"),
                     ""};

    Reader reader(file, "llama");
    Config config;
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
    config.rope_freq_base = reader.real("rope.freq_base", smallest_base, 1e12, 10000.0);
    read_rope_scaling(file, reader, config);
    if (reader.error()) return *reader.error();
    if (config.n_rot % 2 != 0) return reader.bad("rope.dimension_count", cat("is ", config.n_rot, "; allowed: even numbers up to ", config.head_dim));

    if (reader.number("expert_count", 0, UINT32_MAX, 0) != 0 && !reader.error())
        return reader.unsupported("expert_count", "is not 0; mixtures of experts are not supported");
    if (reader.number("attention.sliding_window", 0, UINT32_MAX, 0) != 0 && !reader.error())
        return reader.unsupported("attention.sliding_window", "is not 0; sliding windows are not supported");
    if (reader.error()) return *reader.error();
    for (std::string_view name : unknown_mathematics)
        if (reader.has(name)) return reader.unsupported(name, "is not supported for this architecture");

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
