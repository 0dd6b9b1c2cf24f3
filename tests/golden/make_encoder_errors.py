#!/usr/bin/env python3
"""Writes encoder_errors.txt: the relative error of llama.cpp's encoders on the heavy-tailed rows of tests/quant/encode_test.cpp.

    make_encoder_errors.py PATH/TO/libggml-base.so OUT

The committed file was made with the llama.cpp that llama-cpp-python 0.3.36 carries (ggml 0.25.3), numpy 2.4.6 and the decoder of gguf
0.19.0. Lines: TYPE, 0 or 1 (with importance), sqrt(sum(w (x - decoded)^2) / sum(w x^2)).
"""
import ctypes
import sys

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

ROWS, COLUMNS, SEED = 8, 4096, 1
SEARCHED = [T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS]
RULED = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]  # searched only with importance


class HeavyTails:
    """The generator of encode_test.cpp, number for number."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
        return (self.state >> 11) * 2.0 ** -53

    def normal(self):
        total = 0.0
        for _ in range(12):
            total += self.uniform()
        return total - 6

    def t4(self):
        z, chi2 = self.normal(), 0.0
        for _ in range(4):
            n = self.normal()
            chi2 += n * n
        return z / (chi2 / 4) ** 0.5


def main():
    library, out = sys.argv[1:]
    ggml = ctypes.CDLL(library)
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    random = HeavyTails(SEED)
    importance = np.array([random.normal() ** 2 + 0.01 for _ in range(COLUMNS)], np.float32)
    x = np.array([random.t4() * 0.02 for _ in range(ROWS * COLUMNS)], np.float32).reshape(ROWS, COLUMNS)
    lines = ["# made by make_encoder_errors.py, which says how; do not edit"]
    for types, weights in ((SEARCHED, None), (SEARCHED + RULED, importance)):
        for kind in types:
            elements, size = GGML_QUANT_SIZES[kind]
            raw = np.zeros((ROWS, COLUMNS // elements * size), np.uint8)
            ggml.ggml_quantize_chunk(int(kind), x.ctypes.data, raw.ctypes.data, 0, ROWS, COLUMNS, None if weights is None else weights.ctypes.data)
            rest = x.astype(np.float64) - dequantize(raw, kind)
            w = np.ones(COLUMNS) if weights is None else weights.astype(np.float64)
            error = np.sqrt((w * rest ** 2).sum() / (w * x.astype(np.float64) ** 2).sum())
            lines.append(f"{kind.name} {0 if weights is None else 1} {error:.6f}")
    open(out, "w").write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
