#!/usr/bin/env python3
"""Mean KL divergence and perplexity of hearth beside llama.cpp on one file, by position.

usage: LLAMA_CPP_LIB_PATH=FOLDER bench/peer_kl.py MODEL.gguf TEXT [hearth_logits flags]
FOLDER: llama.cpp's shared libraries; built with -DGGML_BLAS=ON -DGGML_BLAS_VENDOR=OpenBLAS its activations stay floats (see
tests/golden/make_peer_greedy.py), without it they are rounded to 8 bits. Needs PyPI llama-cpp-python and numpy, and
build/bench/hearth_logits. Windows of 256 tokens, 2,048 positions, F32 KV, flash attention off. KL(hearth || peer) in nats.
"""
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy as np

WINDOW, WINDOWS = 256, 8


def log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


def main() -> None:
    model, text, flags = sys.argv[1], pathlib.Path(sys.argv[2]).read_bytes(), sys.argv[3:]
    llm = llama_cpp.Llama(model, n_ctx=2 * WINDOW, n_batch=2 * WINDOW, n_ubatch=2 * WINDOW, n_threads=2, n_threads_batch=2, verbose=False,
                          logits_all=True, type_k=0, type_v=0, flash_attn=False)
    ids = llm.tokenize(text, add_bos=False, special=False)[: WINDOW * WINDOWS]
    assert len(ids) == WINDOW * WINDOWS, f"the text has {len(ids)} tokens"
    with tempfile.TemporaryDirectory() as folder:
        tokens, dump = f"{folder}/tokens", f"{folder}/logits"
        pathlib.Path(tokens).write_text(" ".join(map(str, ids)))
        program = pathlib.Path(__file__).parent.parent / "build/bench/hearth_logits"
        subprocess.run([program, model, tokens, "--window", str(WINDOW), "--out", dump, *flags], check=True)
        ours = np.fromfile(dump, dtype=np.float32).reshape(len(ids), -1)
        divergence, same_best, nll = 0.0, 0, np.zeros(2)
        for start in range(0, len(ids), WINDOW):
            window = ids[start : start + WINDOW]
            llm.reset()
            llm.eval(window)
            a = log_softmax(ours[start : start + WINDOW])
            b = log_softmax(np.array(llm.scores[:WINDOW]))
            divergence += (np.exp(a) * (a - b)).sum()
            same_best += int((a.argmax(axis=1) == b.argmax(axis=1)).sum())
            rows = np.arange(WINDOW - 1)
            nll -= [a[rows, window[1:]].sum(), b[rows, window[1:]].sum()]
    perplexity = np.exp(nll / ((WINDOW - 1) * WINDOWS))
    print(f"positions {len(ids)}  mean KL {divergence / len(ids):.3e}  same best token {same_best / len(ids):.4f}  "
          f"perplexity hearth {perplexity[0]:.6f} peer {perplexity[1]:.6f} ({perplexity[0] / perplexity[1] - 1:+.5%})")


main()
