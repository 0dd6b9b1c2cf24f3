#!/usr/bin/env python3
"""Writes the seed files of corpus/gguf: tiny GGUF files that reach every value type, tensor type and branch of the
parser, and some that are refused. Needs nothing but Python. Usage: make_gguf_corpus.py FOLDER"""
import os
import struct
import sys

TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
         11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2)}
FORMATS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: 'B', 10: 'Q', 11: 'q', 12: 'd'}


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack('<Q', len(raw)) + raw


def value(kind, payload):
    if kind == 8:
        return string(payload)
    if kind == 9:
        element, items = payload
        return struct.pack('<IQ', element, len(items)) + b''.join(value(element, item) for item in items)
    return struct.pack('<' + FORMATS[kind], payload)


def file(metadata, tensors=(), version=3, alignment=32, pad=True):
    out = b'GGUF' + struct.pack('<IQQ', version, len(tensors), len(metadata))
    for key, kind, payload in metadata:
        out += string(key) + struct.pack('<I', kind) + value(kind, payload)
    offset, data = 0, b''
    for name, kind, dims in tensors:
        elements = 1
        for dim in dims:
            elements *= dim
        size = elements // TYPES[kind][0] * TYPES[kind][1]
        out += string(name) + struct.pack('<I', len(dims)) + struct.pack('<%dQ' % len(dims), *dims)
        out += struct.pack('<IQ', kind, offset)
        padded = size + -size % alignment
        data += bytes(i & 0xff for i in range(size)) + bytes(padded - size)
        offset += padded
    if pad:
        out += bytes(-len(out) % alignment)
    return out + data


SCALARS = [('t.u8', 0, 200), ('t.i8', 1, -3), ('t.u16', 2, 60000), ('t.i16', 3, -3), ('t.u32', 4, 7), ('t.i32', 5, -7),
           ('t.f32', 6, 0.5), ('t.bool', 7, 1), ('t.string', 8, 'text \u00e9'), ('t.u64', 10, 2 ** 64 - 1),
           ('t.i64', 11, -2 ** 63), ('t.f64', 12, 1e300)]
ARRAYS = [('a.%d' % kind, 9, (kind, [1, 0, 1])) for kind in FORMATS] + [('a.s', 9, (8, ['', 'a', 'bc'])), ('a.e', 9, (8, []))]
TOKENIZER = [('general.architecture', 8, 'llama'), ('tokenizer.ggml.model', 8, 'gpt2'),
             ('tokenizer.ggml.tokens', 9, (8, ['<s>', 'a', 'b', 'ab'])), ('tokenizer.ggml.token_type', 9, (5, [3, 1, 1, 1])),
             ('tokenizer.ggml.merges', 9, (8, ['a b']))]

CORPUS = {
    'empty_v3': file([]),
    'empty_v2': file([], version=2),
    'scalars': file(SCALARS),
    'arrays': file(ARRAYS),
    'alignment_64': file([('general.alignment', 4, 64)], [('a', 0, [3]), ('b', 1, [5, 2])], alignment=64),
    'alignment_8': file([('general.alignment', 4, 8)], [('a', 0, [1]), ('b', 0, [1, 1, 1, 1])], alignment=8),
    'every_type': file([], [('t.%d' % kind, kind, [TYPES[kind][0], 1]) for kind in TYPES]),
    'model_like': file(TOKENIZER, [('token_embd.weight', 8, [32, 4]), ('blk.0.attn_norm.weight', 0, [32]),
                                   ('output_norm.weight', 0, [32])]),
    'four_dims': file(SCALARS[:2], [('t', 2, [32, 2, 1, 2])]),
    'bad_version': file([], version=1),
    'bad_alignment': file([('general.alignment', 4, 0)]),
    'bad_array_of_array': file([]) [:16] + struct.pack('<Q', 1) + string('k') + struct.pack('<IIQ', 9, 9, 1),
    'bad_counts': b'GGUF' + struct.pack('<IQQ', 3, 65536, 65536) + bytes(64),
    'bad_string': b'GGUF' + struct.pack('<IQQ', 3, 0, 1) + string('k') + struct.pack('<IQ', 8, 1 << 30) + bytes(40),
    'cut_data': file([], [('t', 0, [64])])[:-1],
}

os.makedirs(sys.argv[1], exist_ok=True)
for name, content in CORPUS.items():
    with open(os.path.join(sys.argv[1], name), 'wb') as out:
        out.write(content)
