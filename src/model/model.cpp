#include "model/model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace model {
namespace {

using base::cat;
using base::Error;
using base::ErrorCode;
using base::Result;
using kernels::Tensor;

// The activations of Model, in one place for plan() and load().
struct TensorShape { uint32_t rows, cols; };
std::array<TensorShape, 11> tensor_shapes(const Config& c, const ModelOptions& o) {
    const uint32_t n = o.step_rows_max, last = o.logit_rows_max;
    return {{{n, c.n_embd}, {n, c.n_embd}, {n, c.q_cols()}, {n, c.kv_cols()}, {n, c.kv_cols()}, {n, c.q_cols()}, {n, c.n_ff}, {n, c.n_ff},
             {last, c.n_embd}, {last, c.q_cols()}, {last, c.n_vocab}}};
}

kernels::StepShape step_shape(const Config& c, const ModelOptions& o) {
    return {o.step_rows_max, std::max({c.n_embd, c.q_cols(), c.n_ff}), c.n_heads, c.n_kv_heads, c.head_dim, 1};
}

Result<void> check_options(const Config& config, const ModelOptions& options) {
    if (options.context_length > config.context_length)
        return Error{ErrorCode::invalid_argument, cat("context is ", options.context_length, "; allowed: 1 to ", config.context_length, ", the context length of the file"), "context"};
    CHECK(options.step_rows_max > 0 && options.logit_rows_max > 0 && options.logit_rows_max <= options.step_rows_max);
    return {};
}

MemoryPlan plan_of(const gguf::File& file, const Config& config, const kernels::Backend& backend, const ModelOptions& options) {
    MemoryPlan plan;
    plan.weights_bytes = weight_bytes(file, config, backend);
    for (const TensorShape& shape : tensor_shapes(config, options)) plan.activations_bytes += backend.tensor_bytes(shape.rows, shape.cols);
    plan.scratch_bytes = backend.scratch_bytes(step_shape(config, options));
    plan.kv_block_bytes = backend.kv_block_bytes(config.kv_shape(options.kv_type));
    return plan;
}

}  // namespace

Result<MemoryPlan> plan(const gguf::File& file, const kernels::Backend& backend, const ModelOptions& options) {
    Result<Config> config = read_config(file);
    if (!config) return config.take_error();
    if (Result<void> sound = check_tensors(file, config.value()); !sound) return sound.take_error();
    if (Result<void> sound = check_options(config.value(), options); !sound) return sound.take_error();
    return plan_of(file, config.value(), backend, options);
}

Model::Model(const Config& config, const ModelOptions& options, std::unique_ptr<kernels::Backend> backend)
    : config_(config),
      options_(options),
      context_length_(options.context_length == 0 ? config.context_length : options.context_length),
      attention_scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)))),
      backend_(std::move(backend)) {
    slices_.resize(options.step_rows_max);
}

Result<std::unique_ptr<Model>> Model::load(const gguf::File& file, std::unique_ptr<kernels::Backend> backend, const ModelOptions& options,
                                           const Progress& progress) {
    Result<Config> config = read_config(file);
    if (!config) return config.take_error();
    if (Result<void> sound = check_tensors(file, config.value()); !sound) return sound.take_error();
    if (Result<void> sound = check_options(config.value(), options); !sound) return sound.take_error();

    std::unique_ptr<Model> model(new Model(config.value(), options, std::move(backend)));
    kernels::Backend& device = *model->backend_;
    const MemoryPlan plan = plan_of(file, config.value(), device, options);
    Result<void> reserved = device.reserve(plan.weights_bytes, plan.activations_bytes, config.value().kv_shape(options.kv_type),
                                           options.kv_blocks_count, step_shape(config.value(), options));
    if (!reserved) return reserved.take_error();
    Result<Weights> weights = upload_weights(file, config.value(), device, progress);
    if (!weights) return weights.take_error();
    model->weights_ = std::move(weights).value();

    const Config& c = model->config_;
    model->rope_ = device.add_rope({c.n_rot, c.rope_freq_base, c.rope_freq_scale, model->weights_.rope_factors});
    Tensor* const tensors[] = {&model->x_, &model->normed_, &model->q_, &model->k_, &model->v_, &model->attended_, &model->hidden_, &model->spare_,
                               &model->last_x_, &model->last_attended_, &model->logits_};
    const auto shapes = tensor_shapes(c, options);
    static_assert(std::size(tensors) == std::tuple_size_v<decltype(shapes)>);
    for (size_t i = 0; i < shapes.size(); ++i) *tensors[i] = device.alloc(shapes[i].rows, shapes[i].cols);
    return model;
}

// x += down(silu(gate(norm(x))) * up(norm(x)))
void Model::feed_forward(const LayerWeights& w, Tensor x, Tensor normed, Tensor hidden, Tensor spare) {
    backend_->rms_norm(x, w.ffn_norm, config_.norm_eps, normed);
    backend_->gated(w.gate, w.up, normed, spare, hidden);
    beat();
    backend_->matmul(w.down, hidden, x, true);
}

Logits Model::forward(const Batch& batch) {
    const uint32_t n = static_cast<uint32_t>(batch.tokens.size()), n_last = static_cast<uint32_t>(batch.logit_rows.size());
    CHECK(n > 0 && n <= options_.step_rows_max);
    CHECK_LE(n_last, options_.logit_rows_max);
    CHECK_LE(batch.sequences.size(), slices_.size());
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
        const SequenceSlice& s = batch.sequences[i];
        slices_[i] = {s.first_row, s.n_rows, s.start_position, s.block_table};
    }
    kernels::Backend& b = *backend_;
    const Tensor x = x_.first(n), normed = normed_.first(n), q = q_.first(n), k = k_.first(n), v = v_.first(n), attended = attended_.first(n);
    const Tensor last_x = last_x_.first(n_last), last_attended = last_attended_.first(n_last), logits = logits_.first(n_last);

    b.begin_step(std::span(slices_).first(batch.sequences.size()));
    b.embed(weights_.embeddings, batch.tokens, x);
    for (uint32_t i = 0; i < config_.n_layers; ++i) {
        beat();
        const LayerWeights& w = weights_.layers[i];
        const bool last = i + 1 == config_.n_layers;
        b.rms_norm(x, w.attn_norm, config_.norm_eps, normed);
        const kernels::Backend::Product products[] = {{w.q, q}, {w.k, k}, {w.v, v}};
        b.matmul_many(normed, products);
        b.rope(rope_, q, config_.n_heads);
        b.rope(rope_, k, config_.n_kv_heads);
        b.store_kv(i, k, v);
        if (last && n_last == 0) break;  // only the KV was wanted
        beat();
        b.attention(i, q, attention_scale_, attended);
        if (!last) {
            b.matmul(w.o, attended, x, true);
            feed_forward(w, x, normed, hidden_.first(n), spare_.first(n));
        } else {
            // From here on a row is nobody's neighbour: go on with the rows whose logits are wanted.
            b.gather_rows(attended, batch.logit_rows, last_attended);
            b.gather_rows(x, batch.logit_rows, last_x);
            b.matmul(w.o, last_attended, last_x, true);
            feed_forward(w, last_x, normed_.first(n_last), hidden_.first(n_last), spare_.first(n_last));
        }
    }
    beat();
    if (n_last > 0) {
        b.rms_norm(last_x, weights_.output_norm, config_.norm_eps, normed_.first(n_last));
        b.matmul(weights_.output, normed_.first(n_last), logits, false);
    }
    b.end_step();
    return {b.host(logits), n_last, config_.n_vocab};
}

}  // namespace model
