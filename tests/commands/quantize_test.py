#!/usr/bin/env python3
"""`hearth quantize` from outside: round trips, what it refuses and with which code, that OUT is whole or untouched, its memory.

Environment: HEARTH_BIN, HEARTH_MAKE_TINY_MODEL (the test support program); HEARTH_PYTHON's gguf checks the bytes when it is there.
"""
import json
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ.get("HEARTH_BIN")
MAKE_MODEL = os.environ.get("HEARTH_MAKE_TINY_MODEL")
PYTHON = os.environ.get("HEARTH_PYTHON")
RECIPES = {"F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11, "Q3_K_M": 12,
           "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30}

# Byte equality with the reference encoders, and the file's tensors read by another reader.
CHECK = """
import sys, numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize, quantize
source, target = GGUFReader(sys.argv[1]), GGUFReader(sys.argv[2])
out = {t.name: t for t in target.tensors}
worst, equal = 0.0, 0
for t in source.tensors:
    x, q = dequantize(t.data, t.tensor_type), out[t.name]
    assert list(t.shape) == list(q.shape), t.name
    y = dequantize(q.data, q.tensor_type)
    assert np.isfinite(y).all(), t.name
    worst = max(worst, float(np.sqrt(((x - y) ** 2).mean() / (x ** 2).mean())))
    if q.tensor_type.name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        assert np.array_equal(np.ascontiguousarray(quantize(x, q.tensor_type)).view(np.uint8).ravel(), q.data.view(np.uint8).ravel()), t.name
        equal += 1
print(worst, equal)
"""
# sqrt of the mean square error of a normal source, relative: what rounding to the format's levels leaves, with a margin.
# b bits over +-4 sigma give steps of 8 / 2^b sigma, and a step leaves step / sqrt(12).
BOUNDS = {"F32": 0, "F16": 2.0 ** -11, "BF16": 2.0 ** -8, "Q8_0": 0.01, "Q4_0": 0.15, "Q4_1": 0.15, "Q5_0": 0.075, "Q5_1": 0.075, "Q2_K": 0.58,
          "Q3_K_S": 0.29, "Q3_K_M": 0.29, "Q3_K_L": 0.29, "Q4_K_S": 0.15, "Q4_K_M": 0.15, "Q5_K_S": 0.075, "Q5_K_M": 0.075, "Q6_K": 0.036,
          "IQ4_NL": 0.15, "IQ4_XS": 0.15}


def run(*arguments, timeout=120):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")}
    return subprocess.run([BIN, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=environment)


def gguf(metadata, tensors):
    """A GGUF v3 file: metadata (key, number of the value type, packed value), tensors (name, dims, type number, data)."""
    def string(text):
        raw = text.encode()
        return struct.pack("<Q", len(raw)) + raw
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, kind, value in metadata:
        head += string(key) + struct.pack("<I", kind) + value
    offset = 0
    for name, dims, kind, data in tensors:
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += -(-len(data) // 32) * 32
    out = head + bytes(-len(head) % 32)
    for _, _, _, data in tensors:
        out += data + bytes(-len(data) % 32)
    return out


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


class Quantize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.source, self.target = self.path / "in.gguf", self.path / "out.gguf"
        subprocess.run([MAKE_MODEL, self.source, "--embd", "256", "--ff", "512", "--layers", "8"], check=True, capture_output=True)

    def tearDown(self):
        self.folder.cleanup()

    def refused(self, code, words, *arguments):
        before = {p.name: p.read_bytes() for p in self.path.iterdir() if p.is_file()}
        result = run("quantize", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(result.stdout, "")
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual({p.name: p.read_bytes() for p in self.path.iterdir() if p.is_file()}, before, "a refusal leaves every file as it was")

    def test_every_recipe(self):
        for recipe, number in RECIPES.items():
            result = run("quantize", self.source, self.target, recipe)
            self.assertEqual((result.returncode, result.stderr), (0, ""), recipe)
            report = json.loads(run("inspect", self.target, "--json").stdout)
            self.assertIsNone(report["problem"], recipe)
            self.assertEqual(report["metadata"]["general.file_type"]["value"], number)
            self.assertEqual(report["metadata"]["general.quantization_version"]["value"], 2)
            self.assertEqual([t["type"] for t in report["tensors"] if "norm" in t["name"]], ["F32"] * 17)
            if PYTHON:
                worst, equal = subprocess.run([PYTHON, "-c", CHECK, self.source, self.target], capture_output=True, text=True, check=True).stdout.split()
                self.assertLessEqual(float(worst), BOUNDS[recipe], recipe)
                self.assertGreaterEqual(int(equal), 17)
        self.assertEqual([p.name for p in self.path.iterdir() if "partial" in p.name], [])

    def test_a_quantized_model_answers(self):
        self.assertEqual(run("quantize", self.source, self.target, "Q4_K_M").returncode, 0)
        result = run("run", self.target, "--raw", "--max-tokens", "4", "--temperature", "0", "hello")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_threads_change_no_byte(self):
        images = set()
        for threads in ("1", "2", "5"):
            self.assertEqual(run("quantize", self.source, self.target, "Q4_K_M", "--threads", threads).returncode, 0)
            images.add(self.target.read_bytes())
        self.assertEqual(len(images), 1)

    def test_names_in_any_case_and_an_existing_output(self):
        self.target.write_text("old")
        self.assertEqual(run("quantize", self.source, self.target, "q8_0").returncode, 0)
        self.assertEqual(self.target.read_bytes()[:4], b"GGUF")

    def test_metadata_stays(self):
        run("quantize", self.source, self.target, "Q8_0")
        before, after = (json.loads(run("inspect", p, "--json").stdout)["metadata"] for p in (self.source, self.target))
        for key, value in before.items():
            if key not in ("general.file_type", "general.quantization_version"):
                self.assertEqual({k: v for k, v in value.items() if k != "offset"}, {k: v for k, v in after[key].items() if k != "offset"}, key)

    def test_requantizing_is_asked_for(self):
        quantized = self.path / "q8.gguf"
        self.assertEqual(run("quantize", self.source, quantized, "Q8_0").returncode, 0)
        self.refused(2, ["Q8_0", "--allow-requantize", "token_embd.weight"], quantized, self.target, "Q4_0")
        self.assertEqual(run("quantize", quantized, self.target, "Q8_0").returncode, 0)  # nothing to quantize again
        self.assertEqual(self.target.read_bytes(), quantized.read_bytes())
        self.assertEqual(run("quantize", quantized, self.target, "Q4_0", "--allow-requantize").returncode, 0)

    def test_refusals(self):
        self.refused(2, ["Q9", "Q4_K_M", "IQ4_XS", "BF16"], self.source, self.target, "Q9")
        self.refused(2, ["input itself"], self.source, self.source, "Q8_0")
        link = self.path / "link.gguf"
        link.symlink_to(self.source)
        self.refused(2, ["input itself"], self.source, link, "Q8_0")
        partial = self.path / "out.gguf.partial"
        os.link(self.source, partial)
        self.refused(2, ["input itself"], self.source, self.target, "Q8_0")
        partial.unlink()
        (self.path / "folder").mkdir()
        self.refused(2, ["no regular file"], self.source, self.path / "folder", "Q8_0")
        self.refused(2, ["No such file"], self.path / "none.gguf", self.target, "Q8_0")
        self.refused(1, ["cannot create"], self.source, self.path / "nowhere" / "out.gguf", "Q8_0")
        self.refused(2, ["three operands"], self.source, self.target)
        self.refused(2, ["--imatrix", "Q2_K_S"], self.source, self.target, "Q2_K_S")
        (self.path / "cut.gguf").write_bytes(self.source.read_bytes()[:-1000])
        self.refused(2, ["cut.gguf"], self.path / "cut.gguf", self.target, "Q8_0")

    def test_what_is_not_finite_is_refused_by_tensor_and_row(self):
        for value, recipe, word in ((float("nan"), "Q4_K_M", "NaN"), (float("-inf"), "Q8_0", "NaN"), (1e9, "F16", "too large"), (1e9, "Q4_0", "too large")):
            data = struct.pack("<1024f", *([0.5] * 600 + [value] + [0.5] * 423))
            self.source.write_bytes(gguf([("general.architecture", 8, text("llama"))], [("blk.0.ffn_up.weight", (256, 4), 0, data)]))
            self.target.write_text("old")
            self.refused(2, ["blk.0.ffn_up.weight", "row 2", word], self.source, self.target, recipe)

    def test_full_disk_leaves_the_old_file(self):
        self.target.write_text("old")
        limit = 200_000  # bytes that a file may grow to
        result = subprocess.run([BIN, "quantize", self.source, self.target, "Q8_0"], capture_output=True, text=True, timeout=60,
                                preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                                    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr)
        self.assertEqual(self.target.read_text(), "old")
        self.assertFalse((self.path / "out.gguf.partial").exists())

    def importance(self, name, tensor, values, count):
        entries = [(tensor + ".in_sum2", (len(values), 1), 0, struct.pack(f"<{len(values)}f", *(v * count for v in values))),
                   (tensor + ".counts", (1, 1), 0, struct.pack("<f", count))]
        (self.path / name).write_bytes(gguf([("general.type", 8, text("imatrix")), ("imatrix.chunk_count", 4, struct.pack("<I", 7))], entries))
        return self.path / name

    def test_importance(self):
        """The same matrix in both formats gives the same file; it changes the named tensor and no other."""
        tensor = "blk.3.ffn_up.weight"
        values = [float(1 + i % 7) for i in range(256)]
        new = self.importance("new.gguf", tensor, values, 4.0)
        raw = tensor.encode()
        old = self.path / "old.dat"
        old.write_bytes(struct.pack("<ii", 1, len(raw)) + raw + struct.pack("<ii256f", 4, 256, *(v * 4 for v in values)) + struct.pack("<i", 7))
        images = []
        for matrix in (new, old):
            result = run("quantize", self.source, self.target, "Q4_K_M", "--imatrix", matrix)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            images.append(self.target.read_bytes())
            report = json.loads(run("inspect", self.target, "--json").stdout)
            self.assertEqual(report["metadata"]["quantize.imatrix.entries_count"]["value"], 1)
            self.assertEqual(report["metadata"]["quantize.imatrix.chunks_count"]["value"], 7)
        plain = self.path / "plain.gguf"
        run("quantize", self.source, plain, "Q4_K_M")
        tensors = [{t["name"]: image[t["offset"]:t["offset"] + t["bytes"]] for t in json.loads(run("inspect", path, "--json").stdout)["tensors"]}
                   for image, path in ((images[1], self.target), (plain.read_bytes(), plain))]
        self.assertEqual([n for n in tensors[0] if tensors[0][n] != tensors[1][n]], [tensor])
        self.target.write_bytes(images[0])
        first = {t["name"]: images[0][t["offset"]:t["offset"] + t["bytes"]] for t in json.loads(run("inspect", self.target, "--json").stdout)["tensors"]}
        self.assertEqual(first, tensors[0])

    def test_wrong_importance(self):
        good = self.importance("good.gguf", "blk.3.ffn_up.weight", [1.0] * 256, 1.0)
        for name, arguments, words in (("length", ("blk.3.ffn_up.weight", [1.0] * 255, 1.0), ["255", "256"]),
                                       ("nobody", ("blk.99.ffn_up.weight", [1.0] * 256, 1.0), ["no entry"]),
                                       ("nan", ("blk.3.ffn_up.weight", [1.0] * 255 + [float("nan")], 1.0), ["255", "finite"]),
                                       ("negative", ("blk.3.ffn_up.weight", [1.0] * 255 + [-1.0], 1.0), ["255", "finite"])):
            self.refused(2, words, self.source, self.target, "Q4_K_M", "--imatrix", self.importance(name + ".gguf", *arguments))
        old = struct.pack("<ii", 1, 4) + b"name" + struct.pack("<ii4f", 1, 4, 1, 1, 1, 1)
        for length in range(1, len(old), 3):  # prefixes
            (self.path / "cut.dat").write_bytes(old[:length])
            self.refused(2, ["cut.dat"], self.source, self.target, "Q4_K_M", "--imatrix", self.path / "cut.dat")
        self.refused(2, ["No such file"], self.source, self.target, "Q4_K_M", "--imatrix", self.path / "none")
        self.assertEqual(run("quantize", self.source, self.target, "Q2_K_S", "--imatrix", good).returncode, 0)

    def test_an_interrupt_removes_the_partial_file(self):
        big = self.path / "big.gguf"
        self.sparse(big, tensors=8, rows=8192)
        process = subprocess.Popen([BIN, "quantize", big, self.target, "IQ4_XS", "--threads", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        partial, deadline = self.path / "out.gguf.partial", time.monotonic() + 30
        while not partial.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=30), 130)
        self.assertFalse(partial.exists())
        self.assertFalse(self.target.exists())

    def sparse(self, path, tensors, rows):
        """F16 tensors of 4096 columns whose data was never written: zeros that take no disk."""
        header = gguf([("general.architecture", 8, text("llama")), ("llama.block_count", 4, struct.pack("<I", tensors))], [])
        entries, offset = b"", 0
        for i in range(tensors):
            entries += text(f"blk.{i}.ffn_up.weight") + struct.pack("<I2QIQ", 2, 4096, rows, 1, offset)
            offset += 4096 * rows * 2
        raw = header[:8] + struct.pack("<Q", tensors) + header[16:]
        raw = raw[:24 + 8 + 20 + 4 + 8 + 5 + 8 + 17 + 4 + 4] + entries  # without the padding of the header alone
        with open(path, "wb") as out:
            out.write(raw + bytes(-len(raw) % 32))
            out.truncate(len(raw) + -len(raw) % 32 + offset)

    @unittest.skipIf(os.environ.get("HEARTH_BUILD_KIND") == "sanitizer", "a sanitizer's memory is another matter")
    def test_memory_does_not_grow_with_the_file(self):
        """512 MiB in, and one tensor is half of it: resident memory stays under 128 MiB."""
        big = self.path / "big.gguf"
        self.sparse(big, tensors=2, rows=32768)
        process = subprocess.Popen([BIN, "quantize", big, self.target, "Q8_0"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(self.target.stat().st_size // 2 ** 20, 2 * 32768 * 4096 // 32 * 34 // 2 ** 20)
        print(f"peak resident memory {usage.ru_maxrss / 1024:.0f} MiB for {big.stat().st_size / 2 ** 20:.0f} MiB")
        self.assertLess(usage.ru_maxrss, 128 * 1024)


if __name__ == "__main__":
    if not (BIN and MAKE_MODEL):
        print("HEARTH_BIN or HEARTH_MAKE_TINY_MODEL is not set")
        sys.exit(77)
    unittest.main()
