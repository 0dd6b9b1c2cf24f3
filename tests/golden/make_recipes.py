#!/usr/bin/env python3
"""Writes recipes.txt: which type llama-quantize gives each tensor of small models of several shapes, for every recipe.

    make_recipes.py PATH/TO/llama-quantize OUT

The committed file was made with the llama.cpp that llama-cpp-python 0.3.36 carries (ggml 0.25.3), gguf 0.19.0, numpy 2.4.6.
Lines: `model NAME architecture layers heads kv_heads experts`, `tensor NAME DIMS...` (row length first), then for each recipe
`types RECIPE IMPORTANCE abc...` (IMPORTANCE 0 or 1), one letter for each tensor line: a is the first type of the `letters` line. The input is F16 with F32 vectors.
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import gguf

RECIPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q2_K_S", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
           "Q5_K_S", "Q5_K_M", "Q6_K", "IQ4_NL", "IQ4_XS"]
TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
#         name         architecture layers heads kv width ff  experts tied
MODELS = [("plain",    "llama",  16, 4, 4, 256, 512, 0, False),
          ("shared",   "llama",  16, 8, 2, 256, 512, 0, True),
          ("odd",      "llama",   9, 9, 3, 576, 288, 0, True),   # 576 is no multiple of 256, 288 of 32 alone
          ("narrow",   "llama",   3, 4, 4, 48, 80, 0, False),    # no multiple of 32
          ("experts",  "llama",   8, 4, 4, 256, 256, 8, False),
          ("experts4", "llama",   8, 8, 2, 256, 256, 4, False),
          ("deep",     "llama",  80, 8, 2, 256, 256, 0, False),  # counts as a 70B
          ("fused",    "phi3",   12, 4, 4, 256, 256, 0, False),
          ("falcon",   "falcon", 16, 4, 1, 256, 256, 0, False)]


def tensors(layers, heads, kv, width, ff, experts, tied, architecture):
    """Name and numpy shape (rows first)."""
    kv_width = width // heads * kv
    out = [("token_embd.weight", (40, width)), ("output_norm.weight", (width,))]
    if not tied:
        out.append(("output.weight", (40, width)))
    for i in range(layers):
        b = f"blk.{i}."
        out.append((b + "attn_norm.weight", (width,)))
        if architecture in ("phi3", "falcon"):
            out.append((b + "attn_qkv.weight", (width + 2 * kv_width, width)))
        else:
            out += [(b + "attn_q.weight", (width, width)), (b + "attn_k.weight", (kv_width, width)), (b + "attn_v.weight", (kv_width, width))]
        out.append((b + "attn_output.weight", (width, width)))
        if experts:
            out.append((b + "ffn_gate_inp.weight", (experts, width)))
            out += [(b + "ffn_gate_exps.weight", (experts, ff, width)), (b + "ffn_up_exps.weight", (experts, ff, width)),
                    (b + "ffn_down_exps.weight", (experts, width, ff))]
        else:
            out += [(b + "ffn_gate.weight", (ff, width)), (b + "ffn_up.weight", (ff, width)), (b + "ffn_down.weight", (width, ff))]
    return out


def write_model(path, model, rng):
    name, architecture, layers, heads, kv, width, ff, experts, tied = model
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(layers)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(ff)
    writer.add_context_length(64)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_layer_norm_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(40)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    for tensor, shape in tensors(layers, heads, kv, width, ff, experts, tied, architecture):
        values = rng.standard_normal(shape) * 0.02
        writer.add_tensor(tensor, values.astype(np.float32 if len(shape) == 1 else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_importance(path, model, rng):
    name, architecture, layers, heads, kv, width, ff, experts, tied = model
    writer = gguf.GGUFWriter(path, "")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["random"])
    writer.add_uint32("imatrix.chunk_count", 4)
    writer.add_uint32("imatrix.chunk_size", 64)
    for tensor, shape in tensors(layers, heads, kv, width, ff, experts, tied, architecture):
        if len(shape) == 1 or "token_embd" in tensor or "gate_inp" in tensor:
            continue
        matrices = shape[0] if len(shape) == 3 else 1
        writer.add_tensor(tensor + ".in_sum2", (rng.chisquare(1, (matrices, shape[-1])) * 256).astype(np.float32))
        writer.add_tensor(tensor + ".counts", np.full((matrices, 1), 256, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    program, out = sys.argv[1:]
    rng = np.random.default_rng(4)
    lines = ["# made by make_recipes.py, which says how; do not edit", "letters " + " ".join(TYPES)]
    with tempfile.TemporaryDirectory() as folder:
        source, importance, target = (str(pathlib.Path(folder) / n) for n in ("in.gguf", "imatrix.gguf", "out.gguf"))
        for model in MODELS:
            name, architecture, layers, heads, kv, width, ff, experts, tied = model
            write_model(source, model, rng)
            write_importance(importance, model, rng)
            lines.append(f"model {name} {architecture} {layers} {heads} {kv} {experts}")
            order = [t.name for t in gguf.GGUFReader(source).tensors]
            shapes = dict(tensors(layers, heads, kv, width, ff, experts, tied, architecture))
            lines += [f"tensor {t} " + " ".join(str(d) for d in reversed(shapes[t])) for t in order]
            for recipe in RECIPES:
                for with_importance in (0, 1):
                    if recipe == "Q2_K_S" and not with_importance:
                        continue  # refused
                    command = [program] + (["--imatrix", importance] if with_importance else []) + [source, target, recipe, "2"]
                    run = subprocess.run(command, capture_output=True, text=True)
                    if run.returncode:
                        sys.exit(f"{' '.join(command)}\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
                    types = {t.name: t.tensor_type.name for t in gguf.GGUFReader(target).tensors}
                    lines.append(f"types {recipe} {with_importance} " + "".join(chr(ord("a") + TYPES.index(types[t])) for t in order))
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
