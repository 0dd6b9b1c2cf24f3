"""Reads the file of roundtrip_test.cpp's sample_writer with the PyPI package `gguf` and compares every value."""
import sys

import numpy as np
from gguf import GGUFReader

reader = GGUFReader(sys.argv[1])
values = {name: field.contents() for name, field in reader.fields.items()}
expected = {
    'general.alignment': 64, 'general.architecture': 'llama', 't.u8': 200, 't.i8': -100, 't.u16': 60000,
    't.i16': -30000, 't.u32': 4000000000, 't.i32': -2000000000, 't.u64': 2 ** 64 - 1, 't.i64': -2 ** 63,
    't.f32': float(np.float32(0.1)), 't.f64': 0.1, 't.bool': True, 't.empty': '', 't.strings': ['a', '', '\u00e9\n'],
    't.ints': [-1, 0, 7], 't.big': [1, 2 ** 63], 't.floats': [0.5, -1.5], 't.flags': [False, True, True],
}
for key, value in expected.items():
    assert values[key] == value, (key, values[key], value)
weights = np.arange(96, dtype=np.float32) * 0.5 - 7
a, b = reader.tensors
assert a.name == 'a.weight' and list(a.shape) == [3, 5] and np.array_equal(a.data.reshape(-1), weights[:15])
assert b.name == 'b.weight' and list(b.shape) == [32, 2, 1] and np.array_equal(b.data.reshape(-1), weights[:64])
assert a.data_offset % 64 == 0 and b.data_offset % 64 == 0
