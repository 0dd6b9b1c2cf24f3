#!/usr/bin/env python3
"""Greedy continuations of the default model by llama.cpp, as the right values of tests/model/greedy_parity_test.cpp.

usage: LLAMA_CPP_LIB_PATH=FOLDER make_peer_greedy.py MODEL.gguf > peer_greedy.txt
FOLDER: llama.cpp's shared libraries, built with `cmake -DGGML_BLAS=ON -DGGML_BLAS_VENDOR=OpenBLAS` from the source in PyPI's
llama-cpp-python (0.3.36 was used).
With BLAS llama.cpp multiplies the file's weights with float activations when 32 or more rows are computed at once; without
it activations are rounded to 8 bits, and the program then differs from itself at near ties when a detail of its attention
changes. So every step evaluates the whole sequence anew, all prompts are longer than 32 tokens, and logits are asked for
at every position (else the last layer would have one row). F32 KV, flash attention off.
Each prompt is a chat of one user message under the model's own default system message: the likeliest token 30 times. One
block a prompt:
    prompt TEXT
    ids PROMPT IDS
    step TOKEN LOGIT_OF_BEST LOGIT_OF_SECOND     (30 lines, fewer when the model ends its answer)
"""
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
    llm = llama_cpp.Llama(sys.argv[1], n_ctx=512, n_batch=512, n_ubatch=512, n_threads=2, n_threads_batch=2, verbose=False,
                          logits_all=True, type_k=0, type_v=0, flash_attn=False)
    vocab = llama_cpp.llama_model_get_vocab(llm.model)
    for prompt in PROMPTS:
        text = (
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
        )
        ids = llm.tokenize(text.encode(), add_bos=False, special=True)
        assert len(ids) >= 32, (prompt, len(ids))
        print("prompt", prompt)
        print("ids", *ids)
        for _ in range(30):
            llm.reset()
            llm.eval(ids)
            row = np.array(llm.scores[len(ids) - 1])
            best, second = np.argsort(-row)[:2]
            print("step", best, f"{row[best]:.6f}", f"{row[second]:.6f}")
            if llama_cpp.llama_vocab_is_eog(vocab, int(best)):
                break
            ids.append(int(best))


main()
