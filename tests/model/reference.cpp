#include "reference.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "quant/quantize.h"

namespace reference {
namespace {

// Feature f of token t is at [f * n_tokens + t]: the innermost loop runs over tokens, whose sums are independent.
using Features = std::vector<double>;

struct Shape {
    uint64_t n_embd, n_layers, n_heads, n_kv_heads, head_dim, n_rot;
    double eps, rope_base, rope_factor;
};

uint64_t integer(const gguf::File& file, const std::string& name, uint64_t missing) {
    const auto value = file.get_uint("llama." + name);
    return value.ok() ? value.value() : missing;
}

double real(const gguf::File& file, const std::string& name, double missing) {
    const auto value = file.get_float("llama." + name);
    return value.ok() ? value.value() : missing;
}

Shape read_shape(const gguf::File& file) {
    Shape s;
    s.n_embd = integer(file, "embedding_length", 0);
    s.n_layers = integer(file, "block_count", 0);
    s.n_heads = integer(file, "attention.head_count", 0);
    CHECK(s.n_embd > 0 && s.n_layers > 0 && s.n_heads > 0);
    s.n_kv_heads = integer(file, "attention.head_count_kv", s.n_heads);
    s.head_dim = integer(file, "attention.key_length", s.n_embd / s.n_heads);
    s.n_rot = integer(file, "rope.dimension_count", s.head_dim);
    s.eps = real(file, "attention.layer_norm_rms_epsilon", 0);
    s.rope_base = real(file, "rope.freq_base", 10000);
    const auto scaling = file.get_string("llama.rope.scaling.type");
    s.rope_factor = scaling.ok() && scaling.value() == "linear" ? real(file, "rope.scaling.factor", 1) : 1;
    return s;
}

const gguf::TensorInfo& tensor(const gguf::File& file, const std::string& name) {
    const gguf::TensorInfo* found = file.find_tensor(name);
    CHECK(found != nullptr);
    return *found;
}

std::vector<float> row_of(const gguf::TensorInfo& tensor, uint64_t row) {
    std::vector<float> values(tensor.dims[0]);
    const uint64_t bytes = quant::row_bytes(tensor.type, tensor.dims[0]);
    quant::dequantize_row(tensor.type, tensor.data.data() + row * bytes, values.data(), values.size());
    return values;
}

Features multiply(const gguf::TensorInfo& matrix, const Features& x, size_t n_tokens) {
    CHECK_EQ(matrix.dims[0] * n_tokens, x.size());
    Features y(matrix.dims[1] * n_tokens, 0.0);
    for (uint64_t out = 0; out < matrix.dims[1]; ++out) {
        const std::vector<float> weights = row_of(matrix, out);
        double* sums = y.data() + out * n_tokens;
        for (uint64_t in = 0; in < matrix.dims[0]; ++in) {
            const double w = weights[in];
            const double* values = x.data() + in * n_tokens;
            for (size_t t = 0; t < n_tokens; ++t) sums[t] += w * values[t];
        }
    }
    return y;
}

Features rms_norm(const gguf::TensorInfo& gains, const Features& x, size_t n_tokens, double eps) {
    const std::vector<float> gain = row_of(gains, 0);
    Features y(x.size());
    for (size_t t = 0; t < n_tokens; ++t) {
        double squares = 0;
        for (size_t f = 0; f < gain.size(); ++f) squares += x[f * n_tokens + t] * x[f * n_tokens + t];
        const double scale = 1 / std::sqrt(squares / static_cast<double>(gain.size()) + eps);
        for (size_t f = 0; f < gain.size(); ++f) y[f * n_tokens + t] = gain[f] * (scale * x[f * n_tokens + t]);
    }
    return y;
}

// Turns the pair (2i, 2i + 1) of every head by position * base^(-2i / n_rot) / (linear factor * divisor i).
void rotate(const gguf::File& file, const Shape& s, Features& x, uint64_t n_heads, size_t n_tokens) {
    const gguf::TensorInfo* divisors = file.find_tensor("rope_freqs.weight");
    const std::vector<float> divisor = divisors ? row_of(*divisors, 0) : std::vector<float>(s.n_rot / 2, 1.0f);
    for (uint64_t head = 0; head < n_heads; ++head)
        for (uint64_t i = 0; i < s.n_rot / 2; ++i) {
            const double frequency = std::pow(s.rope_base, -2.0 * static_cast<double>(i) / static_cast<double>(s.n_rot)) / s.rope_factor / divisor[i];
            double* a = x.data() + (head * s.head_dim + 2 * i) * n_tokens;
            double* b = a + n_tokens;
            for (size_t t = 0; t < n_tokens; ++t) {
                const double c = std::cos(static_cast<double>(t) * frequency), d = std::sin(static_cast<double>(t) * frequency);
                const double real_part = a[t] * c - b[t] * d;
                b[t] = a[t] * d + b[t] * c;
                a[t] = real_part;
            }
        }
}

Features attend(const Shape& s, const Features& q, const Features& k, const Features& v, size_t n_tokens) {
    Features y(s.n_heads * s.head_dim * n_tokens, 0.0);
    std::vector<double> weights(n_tokens);
    for (uint64_t head = 0; head < s.n_heads; ++head) {
        const uint64_t first = head * s.head_dim, kv_first = head / (s.n_heads / s.n_kv_heads) * s.head_dim;
        for (size_t t = 0; t < n_tokens; ++t) {
            double most = -INFINITY, total = 0;
            for (size_t past = 0; past <= t; ++past) {
                double dot = 0;
                for (uint64_t d = 0; d < s.head_dim; ++d) dot += q[(first + d) * n_tokens + t] * k[(kv_first + d) * n_tokens + past];
                weights[past] = dot / std::sqrt(static_cast<double>(s.head_dim));
                most = std::max(most, weights[past]);
            }
            for (size_t past = 0; past <= t; ++past) total += weights[past] = std::exp(weights[past] - most);
            for (uint64_t d = 0; d < s.head_dim; ++d) {
                double sum = 0;
                for (size_t past = 0; past <= t; ++past) sum += weights[past] * v[(kv_first + d) * n_tokens + past];
                y[(first + d) * n_tokens + t] = sum / total;
            }
        }
    }
    return y;
}

void add(Features& x, const Features& y) {
    CHECK_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

std::vector<double> logits(const gguf::File& file, std::span<const int32_t> tokens) {
    const Shape s = read_shape(file);
    const size_t n = tokens.size();
    const gguf::TensorInfo& embeddings = tensor(file, "token_embd.weight");
    Features x(s.n_embd * n);
    for (size_t t = 0; t < n; ++t) {
        const std::vector<float> row = row_of(embeddings, static_cast<uint64_t>(tokens[t]));
        for (uint64_t f = 0; f < s.n_embd; ++f) x[f * n + t] = row[f];
    }
    for (uint64_t layer = 0; layer < s.n_layers; ++layer) {
        const auto weight = [&](const char* name) -> const gguf::TensorInfo& {
            return tensor(file, "blk." + std::to_string(layer) + "." + name + ".weight");
        };
        const Features h = rms_norm(weight("attn_norm"), x, n, s.eps);
        Features q = multiply(weight("attn_q"), h, n), k = multiply(weight("attn_k"), h, n);
        const Features v = multiply(weight("attn_v"), h, n);
        rotate(file, s, q, s.n_heads, n);
        rotate(file, s, k, s.n_kv_heads, n);
        add(x, multiply(weight("attn_output"), attend(s, q, k, v, n), n));
        const Features g = rms_norm(weight("ffn_norm"), x, n, s.eps);
        Features gate = multiply(weight("ffn_gate"), g, n);
        const Features up = multiply(weight("ffn_up"), g, n);
        for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
        add(x, multiply(weight("ffn_down"), gate, n));
    }
    const gguf::TensorInfo* output = file.find_tensor("output.weight");
    const Features y = multiply(output ? *output : embeddings, rms_norm(tensor(file, "output_norm.weight"), x, n, s.eps), n);
    std::vector<double> rows(y.size());
    const size_t n_vocab = y.size() / n;
    for (size_t t = 0; t < n; ++t)
        for (size_t token = 0; token < n_vocab; ++token) rows[t * n_vocab + token] = y[token * n + t];
    return rows;
}

Distance distance(std::span<const float> got, std::span<const double> right) {
    CHECK_EQ(got.size(), right.size());
    CHECK(!right.empty());
    double sum = 0, spread = 0, error = 0, most = 0;
    for (const double value : right) sum += value;
    const double mean = sum / static_cast<double>(right.size());
    for (size_t i = 0; i < right.size(); ++i) {
        const double e = got[i] - right[i];
        spread += (right[i] - mean) * (right[i] - mean);
        error += e * e;
        if (!(std::fabs(e) <= most)) most = std::fabs(e);  // a NaN stays
    }
    return {error / spread, most / std::sqrt(spread / static_cast<double>(right.size()))};
}

}  // namespace reference
