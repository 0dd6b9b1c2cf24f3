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
std::array<TensorShape, 14> tensor_shapes(const Config& c, const ModelOptions& o) {
    const uint32_t n = o.step_rows_max, last = o.logit_rows_max, expert_rows = c.n_experts > 0 ? n : 0;
    return {{{n, c.n_embd}, {n, c.n_embd}, {n, c.q_cols()}, {n, c.kv_cols()}, {n, c.kv_cols()}, {n, c.q_cols()}, {n, c.n_ff}, {n, c.n_ff},
             {expert_rows, c.n_experts}, {expert_rows, c.n_embd}, {expert_rows, c.n_embd},
             {last, c.n_embd}, {last, c.q_cols()}, {last, c.n_vocab}}};
}

kernels::StepShape step_shape(const Config& c, const ModelOptions& o) {
    return {o.step_rows_max, std::max({c.n_embd, c.q_cols(), c.n_ff}), c.n_heads, c.n_kv_heads, c.head_dim, static_cast<uint32_t>(c.ropes.size()), c.n_experts, c.n_experts_used};
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
    // One set of angles for a run: keys that were stored under one can't be read under the other.
    const bool far = !c.long_ropes.empty() && model->context_length_ > c.original_context;
    for (const kernels::RopeSpec& rope : far ? c.long_ropes : c.ropes) model->ropes_.push_back(device.add_rope(rope));
    Tensor* const tensors[] = {&model->x_, &model->normed_, &model->q_, &model->k_, &model->v_, &model->attended_, &model->hidden_, &model->spare_,
                               &model->expert_scores_, &model->expert_x_, &model->expert_y_,
                               &model->last_x_, &model->last_attended_, &model->logits_};
    const auto shapes = tensor_shapes(c, options);
    static_assert(std::size(tensors) == std::tuple_size_v<decltype(shapes)>);
    for (size_t i = 0; i < shapes.size(); ++i) *tensors[i] = device.alloc(shapes[i].rows, shapes[i].cols);
    return model;
}

// x, or its norm where the family has one before each half of a layer.
Tensor Model::half_input(Tensor x, kernels::Vector norm) {
    if (!config_.pre_norms) return x;
    const Tensor normed = normed_.first(x.rows);
    backend_->rms_norm(x, norm, config_.norm_eps, normed);
    return normed;
}

// x += in W^T + bias, after its own norm and scale where the family has them.
void Model::add_product(const kernels::Matrix& w, Tensor in, kernels::Vector bias, kernels::Vector post_norm, Tensor x) {
    kernels::Backend& b = *backend_;
    const bool plain = !config_.post_norms && config_.residual_scale == 1;
    const Tensor to = plain ? x : normed_.first(x.rows);
    b.matmul(w, in, to, plain);
    if (bias.n > 0) b.add_bias(to, bias);
    if (plain) return;
    if (config_.post_norms) b.rms_norm(to, post_norm, config_.norm_eps, to);
    if (config_.residual_scale != 1) b.scale(to, config_.residual_scale);
    b.add(x, to);
}

// q_, k_ and v_ of the rows of x, normed and turned.
void Model::project(const LayerWeights& w, const LayerKind& kind, Tensor x) {
    kernels::Backend& b = *backend_;
    const Config& c = config_;
    const Tensor q = q_.first(x.rows), k = k_.first(x.rows), v = v_.first(x.rows);
    const Tensor input = half_input(x, w.attn_norm);
    const kernels::Backend::Product products[] = {{w.q, q}, {w.k, k}, {w.v, v}};
    b.matmul_many(input, products);
    for (const auto& [out, bias] : {std::pair{q, w.q_bias}, {k, w.k_bias}, {v, w.v_bias}})
        if (bias.n > 0) b.add_bias(out, bias);
    if (c.qk_norm == QkNorm::row) {
        b.rms_norm(q, w.q_norm, c.norm_eps, q);
        b.rms_norm(k, w.k_norm, c.norm_eps, k);
    } else if (c.qk_norm == QkNorm::head) {
        // Each head is a row of its own.
        const Tensor q_heads{q.data, q.rows * c.n_heads, c.head_dim}, k_heads{k.data, k.rows * c.n_kv_heads, c.head_dim};
        b.rms_norm(q_heads, w.q_norm, c.norm_eps, q_heads);
        b.rms_norm(k_heads, w.k_norm, c.norm_eps, k_heads);
    }
    if (kind.rope >= 0) {
        const uint32_t rope = ropes_[static_cast<uint32_t>(kind.rope)];
        b.rope(rope, q, c.n_heads);
        b.rope(rope, k, c.n_kv_heads);
    }
}

// x += down(f(gate(norm(x))) * up(norm(x))), or the same of each row's experts
void Model::add_feed_forward(const LayerWeights& w, Tensor x) {
    kernels::Backend& b = *backend_;
    const Config& c = config_;
    const Tensor input = half_input(x, w.ffn_norm), hidden = hidden_.first(x.rows);
    beat();
    if (c.n_experts > 0) {
        CHECK(!c.post_norms && c.residual_scale == 1 && c.pre_norms);
        const kernels::Backend::ExpertBuffers buffers{expert_scores_, expert_x_, expert_y_, hidden_, spare_};
        b.experts({c.n_experts_used, c.normalise_experts, c.activation}, w.router, w.experts, input, buffers, x);
        return;
    }
    b.gated(c.activation, w.gate, w.up, input, spare_.first(x.rows), hidden);
    beat();
    add_product(w.down, hidden, {}, w.post_ffn_norm, x);
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
    const Config& c = config_;
    const Tensor x = x_.first(n), attended = attended_.first(n);
    const Tensor last_x = last_x_.first(n_last), last_attended = last_attended_.first(n_last), logits = logits_.first(n_last);

    b.begin_step(std::span(slices_).first(batch.sequences.size()));
    b.embed(weights_.embeddings, batch.tokens, x);
    if (c.embedding_scale != 1) b.scale(x, c.embedding_scale);
    for (uint32_t i = 0; i < c.n_layers; ++i) {
        beat();
        const LayerWeights& w = weights_.layers[i];
        const bool last = i + 1 == c.n_layers;
        project(w, c.layers[i], x);
        b.store_kv(i, k_.first(n), v_.first(n));
        if (last && n_last == 0) break;  // only the KV was wanted
        beat();
        b.attention(i, q_.first(n), {c.attention_scale, c.attention_soft_cap, c.layers[i].window}, attended);
        if (!last) {
            add_product(w.o, attended, w.o_bias, w.post_attn_norm, x);
            add_feed_forward(w, x);
        } else {
            // From here on a row is nobody's neighbour: go on with the rows whose logits are wanted.
            b.gather_rows(attended, batch.logit_rows, last_attended);
            b.gather_rows(x, batch.logit_rows, last_x);
            add_product(w.o, last_attended, w.o_bias, w.post_attn_norm, last_x);
            add_feed_forward(w, last_x);
        }
    }
    beat();
    if (n_last > 0) {
        b.rms_norm(last_x, weights_.output_norm, c.norm_eps, normed_.first(n_last));
        b.matmul(weights_.output, normed_.first(n_last), logits, false);
        if (c.logit_scale != 1) b.scale(logits, c.logit_scale);
        if (c.logit_soft_cap > 0) b.soft_cap(logits, c.logit_soft_cap);
    }
    b.end_step();
    return {b.host(logits), n_last, config_.n_vocab};
}

}  // namespace model
