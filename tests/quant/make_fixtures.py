#!/usr/bin/env python3
"""Writes blocks of every tensor format with the values that the PyPI package `gguf` decodes from them, and rows of
floats with the bytes that it encodes. The committed fixtures.bin is `make_fixtures.py fixtures.bin` with gguf 0.19.0
and numpy 2.4.6; the test also runs this script with another seed and more blocks when HEARTH_PYTHON is set.

Layout (little-endian): records until the end of the file, each
  u32 kind (0 decode, 1 encode) | u32 GGUF type number | u32 n_elements | u32 n_bytes | f32[n_elements] | u8[n_bytes]
"""
import argparse
import struct

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

TYPES = [T.F32, T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K,
         T.IQ4_NL, T.IQ4_XS]
ENCODED = [T.F32, T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1]

# Byte offsets of the fp16 scales in a block.
SCALE_OFFSETS = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82],
                 T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0]}

# Zero, minus zero, smallest and largest subnormal, smallest normal, one, largest, infinities, NaNs (one signalling).
EDGE_HALVES = [0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01]

EDGE_FLOATS = [0.0, -0.0, 1.0, -1.0, 2.0 ** -149, -(2.0 ** -149), 2.0 ** -126, 2.0 ** -24, 2.0 ** -25,
               np.nextafter(np.float32(2.0 ** -25), np.float32(1)), 1.5 * 2.0 ** -24, 2.0 ** -14, 65504.0, 65519.99,
               65520.0, -65520.0, 1e5, 3.4028234663852886e38, np.inf, -np.inf, np.nan, 1.0 + 2.0 ** -11,
               1.0 + 3 * 2.0 ** -11, 1.0 + 2.0 ** -8, 1.0 + 3 * 2.0 ** -8, 0.1]


def decode_record(rng, qtype, n_random):
    elements, size = GGML_QUANT_SIZES[qtype]
    if qtype in SCALE_OFFSETS:
        edges = len(EDGE_HALVES)
        blocks = rng.integers(0, 256, (edges + n_random, size), dtype=np.uint8)
        for k in range(edges + n_random):
            for n, offset in enumerate(SCALE_OFFSETS[qtype]):
                if k < edges:  # every edge value once as the first scale, a random one beside it
                    bits = EDGE_HALVES[k] if n == 0 else EDGE_HALVES[int(rng.integers(edges))]
                else:
                    bits = int(np.float16(rng.normal() * 0.01).view(np.uint16))
                blocks[k, offset:offset + 2] = np.frombuffer(struct.pack('<H', bits), np.uint8)
    else:
        blocks = rng.integers(0, 256, (16 * n_random, size), dtype=np.uint8)
    raw = blocks.reshape(-1)
    values = dequantize(raw.reshape(1, -1), qtype).reshape(-1).astype(np.float32)
    assert values.size == blocks.shape[0] * elements
    return struct.pack('<4I', 0, int(qtype), values.size, raw.size) + values.tobytes() + raw.tobytes()


def encode_record(rng, qtype, n_random):
    rows = [rng.normal(size=32 * n_random) * 0.02, rng.normal(size=32 * n_random) * 10.0,
            rng.integers(-8, 9, 32 * n_random) * 0.125,           # many ties
            np.zeros(32), np.full(32, 0.75), np.full(32, -3.0),   # constant blocks
            rng.normal(size=32) * 1e-6, rng.normal(size=32) * 1e5]
    if qtype in (T.F32, T.F16, T.BF16):
        rows.append(np.resize(np.array(EDGE_FLOATS, np.float32), 32))
    x = np.concatenate(rows).astype(np.float32)
    with np.errstate(all='ignore'):
        raw = np.ascontiguousarray(quantize(x.reshape(1, -1), qtype)).view(np.uint8).reshape(-1)
    return struct.pack('<4I', 1, int(qtype), x.size, raw.size) + x.tobytes() + raw.tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('out')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--blocks', type=int, default=4, help='random blocks of each type, beside the edge blocks')
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    with open(args.out, 'wb') as out, np.errstate(all='ignore'):
        for qtype in TYPES:
            out.write(decode_record(rng, qtype, args.blocks))
        for qtype in ENCODED:
            out.write(encode_record(rng, qtype, args.blocks))


if __name__ == '__main__':
    main()
