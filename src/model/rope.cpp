#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/limits.h"
#include "quant/quantize.h"

namespace model {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;

constexpr double factor_min = 1e-6, factor_max = 1e6;

std::vector<double> plain(uint32_t n_rot, double base) {
    std::vector<double> frequencies(n_rot / 2);
    for (uint32_t i = 0; i < frequencies.size(); ++i) frequencies[i] = std::pow(base, -2.0 * i / n_rot);
    return frequencies;
}

// (n_rot / 2) finite divisors above 0, or empty when the file has no such tensor.
std::vector<float> divisors(KeyReader& reader, const Config& config, std::string_view name) {
    const gguf::TensorInfo* tensor = reader.file().find_tensor(name);
    if (!tensor) return {};
    const std::string where = cat("tensor '", name, "' (data at ", gguf::place(*tensor), ")");
    if (tensor->dims[0] != config.n_rot / 2 || tensor->dims[1] != 1 || tensor->dims[2] != 1 || tensor->dims[3] != 1) {
        reader.fail(Error{ErrorCode::bad_file, cat(where, " has ", tensor->dims[0], " by ", tensor->dims[1], " elements; the metadata asks for ", config.n_rot / 2), ""});
        return {};
    }
    if (tensor->type != quant::Type::f32 && tensor->type != quant::Type::f16 && tensor->type != quant::Type::bf16) {
        reader.fail(Error{ErrorCode::bad_file, cat(where, " has type ", quant::info(tensor->type).name, "; allowed: F32, F16, BF16"), ""});
        return {};
    }
    std::vector<float> values(tensor->dims[0]);
    quant::dequantize_row(tensor->type, tensor->data.data(), values.data(), values.size());
    for (const float value : values)
        if (!(std::isfinite(value) && value > 0)) {
            reader.fail(Error{ErrorCode::bad_file, cat(where, " holds ", std::to_string(value), "; allowed: finite numbers above 0"), ""});
            return {};
        }
    return values;
}

void divide(std::vector<double>& frequencies, const std::vector<float>& by) {
    for (size_t i = 0; i < by.size(); ++i) frequencies[i] /= by[i];
}

// The pair that turns `turns` times within the original context.
double pair_of(double turns, uint32_t n_rot, double base, double context) {
    return n_rot * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

void yarn(KeyReader& reader, const Config& config, double base, kernels::RopeSpec& rope) {
    const double factor = reader.real("rope.scaling.factor", factor_min, factor_max);
    const uint32_t original = reader.number("rope.scaling.original_context_length", 1, limits::model_context_tokens, config.context_length);
    const double fast = reader.real("rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32.0), slow = reader.real("rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1.0);
    const double extrapolation = reader.real("rope.scaling.yarn_ext_factor", 0, 1, 1.0);
    rope.magnitude = reader.real("rope.scaling.attn_factor", factor_min, factor_max, 1.0) * (factor > 1 ? 1 + 0.1 * std::log(factor) : 1);
    const double low = std::max(0.0, std::floor(pair_of(fast, config.n_rot, base, original)));
    const double high = std::min(config.n_rot - 1.0, std::ceil(pair_of(slow, config.n_rot, base, original)));
    for (uint32_t i = 0; i < rope.frequencies.size(); ++i) {
        const double kept = (1 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0)) * extrapolation;
        rope.frequencies[i] = rope.frequencies[i] / factor * (1 - kept) + rope.frequencies[i] * kept;
    }
}

void longrope(KeyReader& reader, Config& config, kernels::RopeSpec& rope) {
    const std::vector<float> brief = divisors(reader, config, "rope_factors_short.weight"), extended = divisors(reader, config, "rope_factors_long.weight");
    if (reader.error()) return;
    if (brief.empty() || extended.empty()) {
        reader.fail(Error{ErrorCode::bad_file, cat("tensor '", brief.empty() ? "rope_factors_short.weight" : "rope_factors_long.weight", "' is missing; the rope scaling is longrope"), ""});
        return;
    }
    config.original_context = reader.number("rope.scaling.original_context_length", 1, limits::model_context_tokens, config.context_length);
    const double stretch = std::max(1.0, static_cast<double>(config.context_length) / config.original_context);
    const double usual = stretch > 1 ? std::sqrt(1 + std::log(stretch) / std::log(config.original_context)) : 1;
    rope.magnitude = reader.real("rope.scaling.attn_factor", factor_min, factor_max, usual);
    kernels::RopeSpec far = rope;
    divide(far.frequencies, extended);
    config.long_ropes.push_back(std::move(far));
    divide(rope.frequencies, brief);
}

}  // namespace

void add_unscaled_rope(KeyReader& reader, Config& config, kernels::RopePairs pairs, std::string_view base_key, double base_missing) {
    const double base = reader.real(base_key, smallest_rope_base, 1e12, base_missing);
    config.ropes.push_back({pairs, plain(config.n_rot, base)});
    if (!config.long_ropes.empty()) config.long_ropes.push_back(config.ropes.back());
}

void add_rope(KeyReader& reader, Config& config, kernels::RopePairs pairs, std::string_view base_key, double base_missing) {
    const double base = reader.real(base_key, smallest_rope_base, 1e12, base_missing);
    kernels::RopeSpec rope{pairs, plain(config.n_rot, base)};
    constexpr std::string_view type_key = "rope.scaling.type";
    reader.mark_read(type_key);
    std::string_view type = "none";
    if (reader.has(type_key)) {
        base::Result<std::string_view> read = reader.file().get_string(reader.key(type_key));
        if (!read) {
            reader.fail(read.take_error());
            return;
        }
        type = read.value();
    } else if (reader.has("rope.scaling.factor") || reader.has("rope.scale_linear")) {
        type = "linear";  // old files have only rope.scaling.factor without a type, older ones rope.scale_linear
    }
    if (type == "none") reader.mark_read("rope.scaling.factor");
    if (type == "linear") {
        const double factor = reader.real("rope.scaling.factor", factor_min, factor_max, reader.real("rope.scale_linear", factor_min, factor_max, 1.0));
        for (double& frequency : rope.frequencies) frequency /= factor;
    } else if (type == "yarn") {
        yarn(reader, config, base, rope);
    } else if (type == "longrope") {
        longrope(reader, config, rope);
    } else if (type != "none") {
        reader.fail(reader.unsupported(type_key, cat("is '", base::printable(type), "'; supported: none, linear, yarn, longrope (and llama 3 factors in rope_freqs.weight)")));
        return;
    }
    const std::vector<float> llama3 = divisors(reader, config, "rope_freqs.weight");
    divide(rope.frequencies, llama3);
    config.ropes.push_back(std::move(rope));
}

}  // namespace model
