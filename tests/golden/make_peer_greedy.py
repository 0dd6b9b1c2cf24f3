#!/usr/bin/env python3
"""Greedy continuations of the default model by llama.cpp, as the right values of tests/commands/greedy_parity_test.cpp.

usage: expand_to_f32.py MODEL.gguf F32.gguf; make_peer_greedy.py F32.gguf > peer_greedy.txt
The same weights, decoded (why: see expand_to_f32.py).
Needs PyPI llama-cpp-python built from source (0.3.36 was used: pip install --no-binary :all: llama-cpp-python).
Each prompt is a chat of one user message in the model's own format, f16 KV, one thread count, no sampling: the
likeliest token 30 times. Output, one block a prompt:
    prompt TEXT
    ids PROMPT IDS
    step TOKEN LOGIT_OF_BEST LOGIT_OF_SECOND     (30 lines, fewer when the model ends its answer)
"""
import ctypes
import sys

import llama_cpp
import numpy as np

PROMPTS = [
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Explain why the sky is blue in one paragraph.",
    "List three uses of a paperclip.",
    "Translate to Spanish: The house is red.",
    "What is 12 times 11?",
    "Write a Python function that reverses a string.",
    "Who wrote Romeo and Juliet?",
    "Give me a recipe for pancakes.",
    "Summarize the plot of Cinderella in two sentences.",
]


def main() -> None:
    llm = llama_cpp.Llama(sys.argv[1], n_ctx=512, n_threads=2, n_threads_batch=2, logits_all=False, verbose=False)
    for prompt in PROMPTS:
        text = (
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        )
        ids = llm.tokenize(text.encode(), add_bos=False, special=True)
        print("prompt", prompt)
        print("ids", *ids)
        llm.reset()
        llm.eval(ids)
        for _ in range(30):
            pointer = llama_cpp.llama_get_logits_ith(llm.ctx, -1)
            row = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (llm.n_vocab(),))
            best, second = np.argsort(-row)[:2]
            print("step", best, f"{row[best]:.6f}", f"{row[second]:.6f}")
            if llama_cpp.llama_vocab_is_eog(llama_cpp.llama_model_get_vocab(llm.model), int(best)):
                break
            llm.eval([int(best)])


main()
