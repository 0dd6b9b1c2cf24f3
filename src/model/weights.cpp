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

struct Expected {
    std::string name;
    Kind kind;
    uint64_t cols, rows;  // dims[0], dims[1]
    bool optional = false;
    kernels::Matrix* matrix = nullptr;  // where the handle goes
    kernels::Vector* vector = nullptr;
};

// Every tensor the forward pass reads, in the order of a pass. `weights` may be null (for checking alone).
std::vector<Expected> expected_tensors(const Config& c, Weights* weights) {
    std::vector<Expected> list;
    const auto matrix = [&](std::string name, uint64_t rows, uint64_t cols, kernels::Matrix* to, bool optional = false) {
        list.push_back({std::move(name), Kind::matrix, cols, rows, optional, to, nullptr});
    };
    const auto vector = [&](std::string name, kernels::Vector* to) { list.push_back({std::move(name), Kind::vector, c.n_embd, 1, false, nullptr, to}); };
    if (weights) weights->layers.resize(c.n_layers);
    matrix("token_embd.weight", c.n_vocab, c.n_embd, weights ? &weights->embeddings : nullptr);
    list.push_back({"rope_freqs.weight", Kind::factors, c.n_rot / 2, 1, true});
    for (uint32_t i = 0; i < c.n_layers; ++i) {
        LayerWeights* layer = weights ? &weights->layers[i] : nullptr;
        const std::string prefix = cat("blk.", i, ".");
        vector(prefix + "attn_norm.weight", layer ? &layer->attn_norm : nullptr);
        matrix(prefix + "attn_q.weight", c.q_cols(), c.n_embd, layer ? &layer->q : nullptr);
        matrix(prefix + "attn_k.weight", c.kv_cols(), c.n_embd, layer ? &layer->k : nullptr);
        matrix(prefix + "attn_v.weight", c.kv_cols(), c.n_embd, layer ? &layer->v : nullptr);
        matrix(prefix + "attn_output.weight", c.n_embd, c.q_cols(), layer ? &layer->o : nullptr);
        vector(prefix + "ffn_norm.weight", layer ? &layer->ffn_norm : nullptr);
        matrix(prefix + "ffn_gate.weight", c.n_ff, c.n_embd, layer ? &layer->gate : nullptr);
        matrix(prefix + "ffn_up.weight", c.n_ff, c.n_embd, layer ? &layer->up : nullptr);
        matrix(prefix + "ffn_down.weight", c.n_embd, c.n_ff, layer ? &layer->down : nullptr);
    }
    vector("output_norm.weight", weights ? &weights->output_norm : nullptr);
    matrix("output.weight", c.n_vocab, c.n_embd, weights ? &weights->output : nullptr, true);
    return list;
}

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

Result<void> check_tensors(const gguf::File& file, const Config& config) {
    std::set<std::string, std::less<>> known;
    for (const Expected& expected : expected_tensors(config, nullptr)) {
        known.insert(expected.name);
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) {
            if (expected.optional) continue;
            return Error{ErrorCode::bad_file, cat("tensor '", expected.name, "' is missing"), ""};
        }
        if (tensor->dims[0] != expected.cols || tensor->dims[1] != expected.rows || tensor->dims[2] != 1 || tensor->dims[3] != 1) {
            const std::string wanted = expected.kind == Kind::matrix ? cat("[", expected.cols, ", ", expected.rows, "]") : cat("[", expected.cols, "]");
            return Error{ErrorCode::bad_file, cat("tensor '", expected.name, "' (data at byte ", tensor->offset, ") has shape ", shape_text(*tensor), "; the metadata asks for ", wanted), ""};
        }
        if (expected.kind != Kind::matrix && !is_float(tensor->type))
            return Error{ErrorCode::bad_file, cat("tensor '", expected.name, "' (data at byte ", tensor->offset, ") has type ", quant::info(tensor->type).name, "; allowed: F32, F16, BF16"), ""};
        if (expected.kind == Kind::factors)
            for (float factor : decode(*tensor))
                if (!(std::isfinite(factor) && factor > 0))
                    return Error{ErrorCode::bad_file, cat("tensor '", expected.name, "' (data at byte ", tensor->offset, ") holds ", std::to_string(factor), "; allowed: finite numbers above 0"), ""};
    }
    for (const gguf::TensorInfo& tensor : file.tensors())
        if (!known.contains(tensor.name))
            return Error{ErrorCode::bad_file, cat("tensor '", base::printable(tensor.name), "' (data at byte ", tensor.offset, ") is read by nothing in this architecture"), ""};
    return {};
}

uint64_t weight_bytes(const gguf::File& file, const Config& config, const kernels::Backend& backend) {
    uint64_t bytes = 0;
    for (const Expected& expected : expected_tensors(config, nullptr)) {
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) continue;
        if (expected.kind == Kind::matrix) bytes += backend.matrix_bytes(tensor->type, expected.rows, expected.cols);
        if (expected.kind == Kind::vector) bytes += backend.vector_bytes(expected.cols);
    }
    return bytes;
}

Result<Weights> upload_weights(const gguf::File& file, const Config& config, kernels::Backend& backend, const Progress& progress) {
    Weights weights;
    uint64_t done = 0, total = 0;
    for (const gguf::TensorInfo& tensor : file.tensors()) total += tensor.data.size();
    for (const Expected& expected : expected_tensors(config, &weights)) {
        const gguf::TensorInfo* tensor = file.find_tensor(expected.name);
        if (!tensor) continue;  // optional
        switch (expected.kind) {
            case Kind::matrix: {
                Result<kernels::Matrix> matrix = backend.upload({tensor->name, tensor->type, expected.rows, expected.cols, tensor->data, tensor->offset});
                if (!matrix) return matrix.take_error();
                *expected.matrix = matrix.value();
                break;
            }
            case Kind::vector: {
                Result<kernels::Vector> vector = backend.upload_vector(tensor->name, decode(*tensor));
                if (!vector) return vector.take_error();
                *expected.vector = vector.value();
                break;
            }
            case Kind::factors: weights.rope_factors = decode(*tensor); break;
        }
        done += tensor->data.size();
        if (progress) progress(done, total);
    }
    if (!file.find_tensor("output.weight")) weights.output = weights.embeddings;
    return weights;
}

}  // namespace model
