#!/usr/bin/env python3
"""Writes llama_NAME.model (GGUF, F32), llama_NAME.logits and llama_fixtures.txt beside this file: right values of
tests/model/fixture_test.cpp from transformers' LlamaForCausalLM. Needs the packages of tests/requirements-torch.txt.
With --check nothing is written: the values are computed anew and must be those of the committed files (`./dev verify`).

A .logits file is little-endian: 8 bytes "HLOGITS1", int32 n_tokens, int32 n_vocab, int32 ids[n_tokens],
float32 logits[n_tokens][n_vocab], row i after the tokens [0, i].
"""
import math
import pathlib
import platform
import sys

import gguf
import numpy as np
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 100  # more than one KV block of 64

# The shapes are odd on purpose: widths that are no multiple of 32.
FIXTURES = {
    "gqa": dict(seed=11, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                vocab_size=67, tie_word_embeddings=False, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}),
    # Heads of 24 dims where n_embd / n_heads is 16; tied; 3 queries to a key.
    "wide_heads": dict(seed=12, hidden_size=48, intermediate_size=44, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
                       head_dim=24, vocab_size=65, tie_word_embeddings=True, rms_norm_eps=1e-6,
                       rope_parameters={"rope_type": "default", "rope_theta": 500000.0}),
    # Llama 3.1's frequencies at positions beyond the original context; the wavelengths fall into all three bands.
    "llama3_rope": dict(seed=13, hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
                        vocab_size=64, tie_word_embeddings=True, rms_norm_eps=1e-5,
                        rope_parameters={"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
                                         "high_freq_factor": 4.0, "original_max_position_embeddings": 32}),
    # Positions divided by 4.
    "linear_rope": dict(seed=14, hidden_size=32, intermediate_size=40, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
                        vocab_size=64, tie_word_embeddings=False, rms_norm_eps=1e-5,
                        rope_parameters={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}),
}


def llama3_divisors(rope, head_dim):
    """What each frequency is divided by, after the formula that Meta published with Llama 3.1."""
    original = rope["original_max_position_embeddings"]
    low_wavelength = original / rope["low_freq_factor"]
    high_wavelength = original / rope["high_freq_factor"]
    divisors, bands = [], set()
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * rope["rope_theta"] ** (i / head_dim)
        if wavelength < high_wavelength:
            bands.add("kept")
            divisors.append(1.0)
        elif wavelength > low_wavelength:
            bands.add("divided")
            divisors.append(rope["factor"])
        else:
            bands.add("between")
            smooth = (original / wavelength - rope["low_freq_factor"]) / (rope["high_freq_factor"] - rope["low_freq_factor"])
            divisors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    assert len(bands) == 3, bands
    return np.array(divisors, np.float32)


def interleaved(weight, n_heads):
    """Rows of a head from halves (transformers turns dims i and i + d/2) to pairs (GGUF's llama turns 2i and 2i + 1)."""
    rows, cols = weight.shape
    return np.ascontiguousarray(weight.reshape(n_heads, 2, rows // n_heads // 2, cols).swapaxes(1, 2).reshape(rows, cols))


def make_model(options):
    options = dict(options)
    torch.manual_seed(options.pop("seed"))
    config = LlamaConfig(max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2, **options)
    assert config.rope_parameters["rope_type"] == options["rope_parameters"]["rope_type"]
    model = LlamaForCausalLM._from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.normal_(1.0, 0.3)
            elif "embed_tokens" in name or "lm_head" in name:
                parameter.normal_(0.0, 1 / math.sqrt(config.hidden_size) if config.tie_word_embeddings or "lm_head" in name else 1.0)
            elif "q_proj" in name or "k_proj" in name:
                # Twice the usual spread: attention must prefer some positions, or its order would not show.
                parameter.normal_(0.0, 2 / math.sqrt(parameter.shape[1]))
            else:
                parameter.normal_(0.0, 1 / math.sqrt(parameter.shape[1]))
        ids = torch.randint(0, config.vocab_size, (1, N_TOKENS))
        logits = model(ids, use_cache=False).logits[0].numpy()
    return config, model, ids[0].numpy().astype("<i4"), logits.astype("<f4")


def write_gguf(path, config, model):
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    rope = config.rope_parameters
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    if rope["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_divisors(rope, config.head_dim))
    writer.add_tensor("token_embd.weight", state["model.embed_tokens.weight"])
    if not config.tie_word_embeddings:
        writer.add_tensor("output.weight", state["lm_head.weight"])
    writer.add_tensor("output_norm.weight", state["model.norm.weight"])
    names = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
             "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
             "ffn_down": "mlp.down_proj"}
    for layer in range(config.num_hidden_layers):
        for ours, theirs in names.items():
            weight = state[f"model.layers.{layer}.{theirs}.weight"]
            if ours == "attn_q":
                weight = interleaved(weight, config.num_attention_heads)
            if ours == "attn_k":
                weight = interleaved(weight, config.num_key_value_heads)
            writer.add_tensor(f"blk.{layer}.{ours}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits_file(ids, logits):
    """(header with the ids, all of a .logits file)"""
    header = b"HLOGITS1" + np.array(logits.shape, "<i4").tobytes() + ids.tobytes()
    return header, header + logits.tobytes()


def check(prefix, names, make) -> int:
    """make(name) -> (ids, logits) beside the committed PREFIX_NAME.logits. Another processor or thread count may add in another
    order: the logits may differ by float rounding, not more."""
    status = 0
    for name in names:
        ids, logits = make(name)
        header, _ = logits_file(ids, logits)
        committed = (HERE / f"{prefix}_{name}.logits").read_bytes()
        right = committed[: len(header)] == header
        if right:
            there = np.frombuffer(committed[len(header) :], "<f4").reshape(logits.shape).astype(np.float64)
            nmse = np.square(there - logits).sum() / np.square(there).sum()
            right = nmse <= 1e-11
            print(f"{name}: NMSE {nmse:.2e} between the committed logits and those made now")
        if not right:
            print(f"{name}: the committed logits are not what this script makes")
            status = 1
    return status


def main():
    lines = ["Made by make_llama_fixtures.py; read by tests/model/fixture_test.cpp. The form of the .logits files is in the script.",
             f"python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}, numpy {np.__version__}", ""]
    for name, options in FIXTURES.items():
        config, model, ids, logits = make_model(options)
        write_gguf(HERE / f"llama_{name}.model", config, model)
        (HERE / f"llama_{name}.logits").write_bytes(logits_file(ids, logits)[1])
        top = np.sort(logits, axis=1)
        told = {key: value for key, value in options.items() if key != "rope_parameters"} | options["rope_parameters"]
        lines += [f"fixture {name}", *(f"  {key}: {value}" for key, value in told.items()),
                  f"  logits: {logits.shape[0]} x {logits.shape[1]}, deviation {logits.std():.4f}, "
                  f"least distance of the two best {np.min(top[:, -1] - top[:, -2]):.5f}", ""]
    (HERE / "llama_fixtures.txt").write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    sys.exit(check("llama", FIXTURES, lambda name: make_model(FIXTURES[name])[2:]) if sys.argv[1:] == ["--check"] else main())
