#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/check.h"
#include "base/message.h"
#include "quant/quantize.h"

namespace model {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::Result;

enum class Kind { matrix, vector, factors };

// Rows of a tensor that become a matrix of their own.
struct Part {
    uint64_t rows;
    kernels::Matrix* to;  // where the handle goes; null when only checking
};

struct Expected {
    std::string name;
    Kind kind;
    uint64_t cols, rows, depth = 1;  // dims[0], dims[1], dims[2]
    bool optional = false;
    std::vector<Part> parts;            // matrices: all rows, in order
    kernels::Vector* vector = nullptr;  // where the handle goes
};

// Every tensor the forward pass reads, in the order of a pass. `weights` may be null (for checking alone).
class Inventory {
  public:
    Inventory(const Config& config, Weights* weights) : c_(config), weights_(weights) {
        if (weights_) weights_->layers.resize(c_.n_layers);
        matrix("token_embd.weight", c_.n_vocab, c_.n_embd, weights_ ? &weights_->embeddings : nullptr);
        list_.push_back({"rope_freqs.weight", Kind::factors, c_.n_rot / 2, 1, 1, true, {}});  // read with the configuration
        if (!c_.long_ropes.empty())
            for (const char* name : {"rope_factors_short.weight", "rope_factors_long.weight"}) list_.push_back({name, Kind::factors, c_.n_rot / 2, 1, 1, false, {}});
        LayerWeights unused;
        for (uint32_t i = 0; i < c_.n_layers; ++i) layer(cat("blk.", i, "."), weights_ ? weights_->layers[i] : unused);
        vector("output_norm.weight", c_.n_embd, weights_ ? &weights_->output_norm : nullptr);
        matrix("output.weight", c_.n_vocab, c_.n_embd, weights_ ? &weights_->output : nullptr, true);
    }
    const std::vector<Expected>& list() const { return list_; }

  private:
    void matrix(std::string name, uint64_t rows, uint64_t cols, kernels::Matrix* to, bool optional = false) {
        list_.push_back({std::move(name), Kind::matrix, cols, rows, 1, optional, {{rows, to}}});
    }
    void vector(std::string name, uint64_t n, kernels::Vector* to, bool optional = false) {
        list_.push_back({std::move(name), Kind::vector, n, 1, 1, optional, {}, to});
    }
    // One tensor, several matrices behind each other.
    void fused(std::string name, uint64_t cols, std::vector<Part> parts) {
        uint64_t rows = 0;
        for (const Part& part : parts) rows += part.rows;
        list_.push_back({std::move(name), Kind::matrix, cols, rows, 1, false, std::move(parts)});
    }
    // (cols, rows, n_experts)
    void experts(std::string name, uint64_t rows, uint64_t cols, LayerWeights& layer, kernels::Matrix kernels::Backend::Expert::*member) {
        std::vector<Part> parts;
        for (kernels::Backend::Expert& expert : layer.experts) parts.push_back({rows, &(expert.*member)});
        list_.push_back({std::move(name), Kind::matrix, cols, rows, c_.n_experts, false, std::move(parts)});
    }

    void layer(const std::string& prefix, LayerWeights& l) {
        if (c_.pre_norms) vector(prefix + "attn_norm.weight", c_.n_embd, &l.attn_norm);
        if (c_.fused_qkv) {
            fused(prefix + "attn_qkv.weight", c_.n_embd, {{c_.q_cols(), &l.q}, {c_.kv_cols(), &l.k}, {c_.kv_cols(), &l.v}});
        } else {
            matrix(prefix + "attn_q.weight", c_.q_cols(), c_.n_embd, &l.q);
            matrix(prefix + "attn_k.weight", c_.kv_cols(), c_.n_embd, &l.k);
            matrix(prefix + "attn_v.weight", c_.kv_cols(), c_.n_embd, &l.v);
        }
        if (c_.biases) {
            vector(prefix + "attn_q.bias", c_.q_cols(), &l.q_bias, true);
            vector(prefix + "attn_k.bias", c_.kv_cols(), &l.k_bias, true);
            vector(prefix + "attn_v.bias", c_.kv_cols(), &l.v_bias, true);
            vector(prefix + "attn_output.bias", c_.n_embd, &l.o_bias, true);
        }
        if (c_.qk_norm != QkNorm::none) {
            const bool head = c_.qk_norm == QkNorm::head;
            vector(prefix + "attn_q_norm.weight", head ? c_.head_dim : c_.q_cols(), &l.q_norm);
            vector(prefix + "attn_k_norm.weight", head ? c_.head_dim : c_.kv_cols(), &l.k_norm);
        }
        matrix(prefix + "attn_output.weight", c_.n_embd, c_.q_cols(), &l.o);
        if (c_.post_norms) vector(prefix + "post_attention_norm.weight", c_.n_embd, &l.post_attn_norm);
        if (c_.pre_norms) vector(prefix + "ffn_norm.weight", c_.n_embd, &l.ffn_norm);
        if (c_.n_experts > 0) {
            l.experts.resize(c_.n_experts);
            matrix(prefix + "ffn_gate_inp.weight", c_.n_experts, c_.n_embd, &l.router);
            experts(prefix + "ffn_gate_exps.weight", c_.n_ff, c_.n_embd, l, &kernels::Backend::Expert::gate);
            experts(prefix + "ffn_up_exps.weight", c_.n_ff, c_.n_embd, l, &kernels::Backend::Expert::up);
            experts(prefix + "ffn_down_exps.weight", c_.n_embd, c_.n_ff, l, &kernels::Backend::Expert::down);
        } else {
            if (c_.fused_gate_up) {
                fused(prefix + "ffn_up.weight", c_.n_embd, {{c_.n_ff, &l.gate}, {c_.n_ff, &l.up}});
            } else {
                matrix(prefix + "ffn_gate.weight", c_.n_ff, c_.n_embd, &l.gate);
                matrix(prefix + "ffn_up.weight", c_.n_ff, c_.n_embd, &l.up);
            }
            matrix(prefix + "ffn_down.weight", c_.n_embd, c_.n_ff, &l.down);
        }
        if (c_.post_norms) vector(prefix + "post_ffw_norm.weight", c_.n_embd, &l.post_ffn_norm);
    }

    const Config& c_;
    Weights* const weights_;
    std::vector<Expected> list_;
};

bool is_float(quant::Type type) { return type == quant::Type::f32 || type == quant::Type::f16 || type == quant::Type::bf16; }

std::string shape_text(const gguf::TensorInfo& tensor) {
    std::string text = "[";
    for (uint32_t i = 0; i < tensor.n_dims && i < 4; ++i) text += cat(i ? ", " : "", tensor.dims[i]);
    return text + "]";
}

std::vector<float> decode(const gguf::TensorInfo& tensor) {
    std::vector<float> values(tensor.dims[0]);
    quant::dequantize_row(tensor.type, tensor.data.data(), values.data(), values.size());
    return values;
}

}  // namespace

std::vector<Error> tensor_faults(const gguf::File& file, const Config& config, size_t faults_max) {
    std::vector<Error> faults;
    std::set<std::string, std::less<>> known;
    const Inventory inventory(config, nullptr);
    for (const Expected& expected : inventory.list()) {
        if (faults.size() >= faults_max) return faults;
        known.insert(expected.name);
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) {
            if (expected.optional) continue;
            faults.push_back({ErrorCode::bad_file, cat("tensor '", expected.name, "' is missing"), ""});
            continue;
        }
        if (tensor->dims[0] != expected.cols || tensor->dims[1] != expected.rows || tensor->dims[2] != expected.depth || tensor->dims[3] != 1) {
            std::string wanted = cat("[", expected.cols);
            if (expected.kind == Kind::matrix) wanted += cat(", ", expected.rows);
            if (expected.depth > 1) wanted += cat(", ", expected.depth);
            wanted += "]";
            faults.push_back({ErrorCode::bad_file,
                              cat("tensor '", expected.name, "' (data at ", gguf::place(*tensor), ") has shape ", shape_text(*tensor), "; the metadata asks for ", wanted), ""});
        }
        if (expected.kind != Kind::matrix && !is_float(tensor->type))
            faults.push_back({ErrorCode::bad_file,
                              cat("tensor '", expected.name, "' (data at ", gguf::place(*tensor), ") has type ", quant::info(tensor->type).name, "; allowed: F32, F16, BF16"), ""});
    }
    for (const gguf::TensorInfo& tensor : file.tensors())
        if (faults.size() < faults_max && !known.contains(tensor.name))
            faults.push_back({ErrorCode::bad_file, cat("tensor '", base::printable(tensor.name), "' (data at ", gguf::place(tensor), ") is read by nothing in this architecture"), ""});
    return faults;
}

Result<void> check_tensors(const gguf::File& file, const Config& config) {
    std::vector<Error> faults = tensor_faults(file, config, 1);
    if (!faults.empty()) return std::move(faults[0]);
    return {};
}

uint64_t weight_bytes(const gguf::File& file, const Config& config, const kernels::Backend& backend) {
    uint64_t bytes = 0;
    const Inventory inventory(config, nullptr);
    for (const Expected& expected : inventory.list()) {
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) continue;
        for (const Part& part : expected.parts) bytes += backend.matrix_bytes(tensor->type, part.rows, expected.cols);
        if (expected.kind == Kind::vector) bytes += backend.vector_bytes(expected.cols);
    }
    return bytes;
}

Result<Weights> upload_weights(const gguf::File& file, const Config& config, kernels::Backend& backend, const Progress& progress) {
    Weights weights;
    uint64_t done = 0, total = 0;
    for (const gguf::TensorInfo& tensor : file.tensors()) total += tensor.data.size();
    const Inventory inventory(config, &weights);
    for (const Expected& expected : inventory.list()) {
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) continue;  // optional
        switch (expected.kind) {
            case Kind::matrix: {
                const uint64_t row_bytes = quant::row_bytes(tensor->type, expected.cols);
                uint64_t at = 0;
                for (const Part& part : expected.parts) {
                    const uint64_t bytes = part.rows * row_bytes;
                    const kernels::HostMatrix host{tensor->name, tensor->type, part.rows, expected.cols, tensor->data.subspan(at, bytes), tensor->offset + at, tensor->part};
                    Result<kernels::Matrix> matrix = backend.upload(host);
                    if (!matrix) return matrix.take_error();
                    *part.to = matrix.value();
                    at += bytes;
                }
                break;
            }
            case Kind::vector: {
                Result<kernels::Vector> vector = backend.upload_vector(tensor->name, decode(*tensor));
                if (!vector) return vector.take_error();
                *expected.vector = vector.value();
                break;
            }
            case Kind::factors: break;  // in the configuration
        }
        done += tensor->data.size();
        if (progress) progress(done, total);
    }
    if (!file.find_tensor("output.weight")) weights.output = weights.embeddings;
    return weights;
}

}  // namespace model
