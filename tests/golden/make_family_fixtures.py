#!/usr/bin/env python3
"""Writes family_NAME.model (GGUF, F32), family_NAME.logits and family_fixtures.txt beside this file: right values of
tests/model/fixture_test.cpp for every family but plain llama (make_llama_fixtures.py has that), from transformers' models in
fp32. Needs the packages of tests/requirements-torch.txt. With --check nothing is written: the values are computed anew and
must be those of the committed files (`./dev verify`). With names only these are made.

Every norm weight and bias is random, so that none can be forgotten; 150 tokens are more than two KV blocks, more than every
window here and more than the original context of the stretched ropes.
"""
import math
import pathlib
import platform
import sys

import gguf
import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM

from make_llama_fixtures import check, interleaved, logits_file

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 150
DEFAULT_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 32, "beta_fast": 8.0, "beta_slow": 1.0}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 64,
        "short_factor": [1.0, 1.1, 1.2, 1.5], "long_factor": [1.0, 2.0, 4.5, 8.0]}

SMALL = dict(hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=67,
             tie_word_embeddings=False, rms_norm_eps=1e-5, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GEMMA = SMALL | dict(tie_word_embeddings=True, rms_norm_eps=1e-6, head_dim=16, hidden_activation="gelu_pytorch_tanh")

# name: seed, GGUF architecture, transformers' configuration class, its arguments
FIXTURES = {
    "mistral_window": (21, "llama", "MistralConfig", SMALL | dict(sliding_window=70, rope_parameters=DEFAULT_ROPE)),
    "llama_biases": (22, "llama", "LlamaConfig", SMALL | dict(attention_bias=True, rope_parameters=DEFAULT_ROPE)),
    "llama_yarn": (23, "llama", "LlamaConfig", SMALL | dict(rope_parameters=YARN)),
    "mixtral": (24, "llama", "MixtralConfig", SMALL | dict(num_local_experts=5, num_experts_per_tok=2, sliding_window=None, rope_parameters=DEFAULT_ROPE)),
    "smollm3": (25, "smollm3", "SmolLM3Config", SMALL | dict(num_hidden_layers=5, no_rope_layers=[1, 1, 1, 0, 1], rope_parameters=DEFAULT_ROPE)),
    "granite": (26, "granite", "GraniteConfig", SMALL | dict(embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.2, logits_scaling=2.5,
                                                             rope_parameters=DEFAULT_ROPE)),
    "qwen2": (27, "qwen2", "Qwen2Config", SMALL | dict(rope_parameters=DEFAULT_ROPE | {"rope_theta": 1e6})),
    "qwen3": (28, "qwen3", "Qwen3Config", SMALL | dict(head_dim=24, rope_parameters=DEFAULT_ROPE)),
    "qwen3moe": (29, "qwen3moe", "Qwen3MoeConfig", SMALL | dict(head_dim=16, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20, norm_topk_prob=True,
                                                                decoder_sparse_step=1, mlp_only_layers=[], rope_parameters=DEFAULT_ROPE)),
    "gemma": (30, "gemma", "GemmaConfig", GEMMA | dict(rope_parameters=DEFAULT_ROPE)),
    "gemma2": (31, "gemma2", "Gemma2Config", GEMMA | dict(num_hidden_layers=3, sliding_window=70, query_pre_attn_scalar=16, attn_logit_softcapping=5.0,
                                                          final_logit_softcapping=3.0, rope_parameters=DEFAULT_ROPE)),
    "gemma3": (32, "gemma3", "Gemma3TextConfig",
               GEMMA | dict(num_hidden_layers=7, sliding_window=40, query_pre_attn_scalar=16, layer_types=["sliding_attention"] * 5 + ["full_attention", "sliding_attention"],
                            rope_parameters={"full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0}, "sliding_attention": DEFAULT_ROPE})),
    "phi3": (33, "phi3", "Phi3Config", SMALL | dict(sliding_window=None, rope_parameters=DEFAULT_ROPE)),
    "phi3_longrope": (34, "phi3", "Phi3Config", SMALL | dict(sliding_window=None, original_max_position_embeddings=64, rope_parameters=LONG)),
    "olmo2": (35, "olmo2", "Olmo2Config", SMALL | dict(rope_parameters=DEFAULT_ROPE)),
}


def make_model(name):
    seed, _, config_class, options = FIXTURES[name]
    torch.manual_seed(seed)
    config = getattr(transformers, config_class)(**options)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    plus_one = config_class.startswith("Gemma")  # these norms multiply by 1 + weight
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if "norm" in parameter_name:
                parameter.normal_(0.0 if plus_one else 1.0, 0.3)
            elif parameter_name.endswith("bias"):
                parameter.normal_(0.0, 0.5)
            elif "embed_tokens" in parameter_name or "lm_head" in parameter_name:
                parameter.normal_(0.0, 1 / math.sqrt(config.hidden_size) if config.tie_word_embeddings or "lm_head" in parameter_name else 1.0)
            elif "q_proj" in parameter_name or "k_proj" in parameter_name or "qkv_proj" in parameter_name or "router" in parameter_name or ".gate.weight" in parameter_name:
                parameter.normal_(0.0, 2 / math.sqrt(parameter.shape[-1]))
            else:
                parameter.normal_(0.0, 1 / math.sqrt(parameter.shape[-1]))
        ids = torch.randint(0, config.vocab_size, (1, N_TOKENS))
        logits = model(ids, use_cache=False).logits[0].numpy()
    return config, model, ids[0].numpy().astype("<i4"), logits.astype("<f4")


def write_metadata(writer, name, architecture, config):
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    rope = config.rope_parameters
    if name == "gemma3":
        writer.add_float32("gemma3.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
        rope = rope["full_attention"]
    writer.add_rope_freq_base(rope["rope_theta"])
    kind = rope["rope_type"]
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_float32(f"{architecture}.rope.scaling.yarn_beta_fast", rope["beta_fast"])
        writer.add_float32(f"{architecture}.rope.scaling.yarn_beta_slow", rope["beta_slow"])
    if kind == "longrope":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        original = rope["original_max_position_embeddings"]
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(config.max_position_embeddings / original) / math.log(original)))
        writer.add_tensor("rope_factors_short.weight", np.array(rope["short_factor"], np.float32))
        writer.add_tensor("rope_factors_long.weight", np.array(rope["long_factor"], np.float32))
    if getattr(config, "sliding_window", None):
        writer.add_sliding_window(config.sliding_window)
    if architecture == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if name == "mixtral":
        writer.add_expert_count(config.num_local_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
    if name == "qwen3moe":
        writer.add_expert_count(config.num_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(config.moe_intermediate_size)


NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_qkv": "self_attn.qkv_proj"}
SANDWICH = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}


def write_tensors(writer, architecture, config, model):
    state = {key.removeprefix("model."): value.numpy() for key, value in model.state_dict().items()}
    used = set()

    def take(key):
        used.add(key)
        value = state[key]
        return value + 1 if architecture.startswith("gemma") and "norm" in key else value

    names = dict(NAMES)
    if architecture in ("gemma2", "gemma3", "olmo2"):
        names |= SANDWICH
    if architecture == "phi3":
        names |= {"ffn_up": "mlp.gate_up_proj"}
    pairs = architecture in ("llama", "smollm3", "granite")
    writer.add_tensor("token_embd.weight", take("embed_tokens.weight"))
    if not config.tie_word_embeddings:
        writer.add_tensor("output.weight", take("lm_head.weight"))
    used.add("lm_head.weight")
    writer.add_tensor("output_norm.weight", take("norm.weight"))
    for layer in range(config.num_hidden_layers):
        prefix = f"layers.{layer}."
        for ours, theirs in names.items():
            for kind in ("weight", "bias"):
                key = f"{prefix}{theirs}.{kind}"
                if key not in state:
                    continue
                value = take(key)
                if pairs and ours in ("attn_q", "attn_k"):
                    heads = config.num_attention_heads if ours == "attn_q" else config.num_key_value_heads
                    value = interleaved(value.reshape(value.shape[0], -1), heads).reshape(value.shape)
                writer.add_tensor(f"blk.{layer}.{ours}.{kind}", value)
        experts = [key for key in state if key.startswith(prefix + "mlp.experts.")]
        if experts:
            both = take(prefix + "mlp.experts.gate_up_proj")
            half = both.shape[1] // 2
            writer.add_tensor(f"blk.{layer}.ffn_gate_exps.weight", np.ascontiguousarray(both[:, :half]))
            writer.add_tensor(f"blk.{layer}.ffn_up_exps.weight", np.ascontiguousarray(both[:, half:]))
            writer.add_tensor(f"blk.{layer}.ffn_down_exps.weight", take(prefix + "mlp.experts.down_proj"))
            writer.add_tensor(f"blk.{layer}.ffn_gate_inp.weight", take(prefix + "mlp.gate.weight"))
    left = set(state) - used
    assert not left, f"tensors that no GGUF name takes: {sorted(left)}"


def write_gguf(path, name, config, model):
    architecture = FIXTURES[name][1]
    writer = gguf.GGUFWriter(path, architecture)
    write_metadata(writer, name, architecture, config)
    write_tensors(writer, architecture, config, model)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    names = [name for name in sys.argv[1:] if name != "--check"] or list(FIXTURES)
    if "--check" in sys.argv[1:]:
        return check("family", names, lambda name: make_model(name)[2:])
    lines = ["Made by make_family_fixtures.py; read by tests/model/fixture_test.cpp.",
             f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}, numpy {np.__version__}", ""]
    for name in names:
        config, model, ids, logits = make_model(name)
        write_gguf(HERE / f"family_{name}.model", name, config, model)
        (HERE / f"family_{name}.logits").write_bytes(logits_file(ids, logits)[1])
        seed, architecture, config_class, options = FIXTURES[name]
        top = np.sort(logits, axis=1)
        lines += [f"{name}: {architecture}, {config_class}, seed {seed}", *(f"  {key}: {value}" for key, value in options.items() if SMALL.get(key) != value),
                  f"  logits: {logits.shape[0]} x {logits.shape[1]}, deviation {logits.std():.4f}, least distance of the two best {np.min(top[:, -1] - top[:, -2]):.5f}", ""]
        print(lines[-2])
    if names == list(FIXTURES):
        (HERE / "family_fixtures.txt").write_text("\n".join(lines).rstrip() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
