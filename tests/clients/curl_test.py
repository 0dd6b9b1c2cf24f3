#!/usr/bin/env python3
"""What people type: curl, with and without headers, streaming and not."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import server_fixture as fixture

CHAT = json.dumps({"messages": fixture.PARIS, "temperature": 0})
STREAM = json.dumps({"messages": fixture.PARIS, "temperature": 0, "stream": True})


class Curl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = fixture.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)

    def curl(self, path, *arguments):
        result = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments, self.server.url + path], capture_output=True, check=True)
        return result.stdout

    def test_chat(self):
        answer = json.loads(self.curl("/v1/chat/completions", "-H", "Content-Type: application/json", "-d", CHAT))
        self.assertEqual(answer["choices"][0]["message"]["content"], "The capital of France is Paris.")

    def test_without_content_type(self):
        """-d alone says application/x-www-form-urlencoded; the body is JSON all the same."""
        self.assertIn(b"Paris", self.curl("/v1/chat/completions", "-d", CHAT))
        self.assertIn(b"Paris", self.curl("/chat/completions/", "-H", "Content-Type:", "-d", CHAT))

    def test_stream(self):
        out = self.curl("/v1/chat/completions", "-N", "-i", "-d", STREAM).decode()
        head, _, body = out.partition("\r\n\r\n")
        self.assertIn("Content-Type: text/event-stream", head)
        self.assertIn("Cache-Control: no-cache", head)
        self.assertNotIn("Content-Encoding", head)
        events = [line[6:] for line in body.split("\n") if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        text = "".join(json.loads(e)["choices"][0]["delta"].get("content", "") for e in events[:-1])
        self.assertEqual(text, "The capital of France is Paris.")

    def test_http_1_0_and_chunked_body(self):
        self.assertIn(b"Paris", self.curl("/v1/chat/completions", "--http1.0", "-d", CHAT))
        self.assertIn(b"[DONE]", self.curl("/v1/chat/completions", "--http1.0", "-N", "-d", STREAM))
        self.assertIn(b"Paris", self.curl("/v1/chat/completions", "-H", "Transfer-Encoding: chunked", "-d", CHAT))

    def test_large_body_with_expect(self):
        """curl asks before it sends more than 1 MiB; the answer is about the content, not a hang."""
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump({"messages": [{"role": "user", "content": "x" * (2 << 20)}]}, file)
            file.flush()
            answer = json.loads(self.curl("/v1/chat/completions", "-H", "Expect: 100-continue", "--data-binary", "@" + file.name))
        self.assertEqual(answer["error"]["code"], "context_length_exceeded")

    def test_page_and_head(self):
        page = self.curl("/", "--compressed").decode()
        self.assertIn("<html", page)
        head = self.curl("/", "-I").decode()
        self.assertIn("Content-Security-Policy:", head)
        etag = [line.split(": ", 1)[1].strip() for line in head.splitlines() if line.lower().startswith("etag")][0]
        self.assertIn("304", self.curl("/", "-i", "-H", "If-None-Match: " + etag).decode().splitlines()[0])
        for path in ("/health", "/ready", "/metrics", "/v1/models"):
            self.assertIn("200", self.curl(path, "-I").decode().splitlines()[0], path)

    def test_tokens_there_and_back(self):
        text = "Grüße, 世界! 🦔 <|im_end|>"
        tokens = json.loads(self.curl("/tokenize", "-d", json.dumps({"content": text})))["tokens"]
        self.assertEqual(json.loads(self.curl("/detokenize", "-d", json.dumps({"tokens": tokens})))["content"], text)
        special = json.loads(self.curl("/tokenize", "-d", json.dumps({"content": "<|im_end|>", "parse_special": True})))["tokens"]
        self.assertEqual(len(special), 1)
        self.assertNotIn(special[0], tokens)  # a user's text is never a control token
        prompt = json.loads(self.curl("/apply-template", "-d", CHAT))["prompt"]
        self.assertTrue(prompt.startswith("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"), prompt)
        self.assertTrue(prompt.endswith("<|im_start|>assistant\n"), prompt)
        counted = json.loads(self.curl("/tokenize", "-d", CHAT))["count"]
        used = json.loads(self.curl("/v1/chat/completions", "-d", CHAT))["usage"]["prompt_tokens"]
        self.assertEqual(counted, used)


if __name__ == "__main__":
    if not shutil.which("curl"):
        print("skipped: no curl")
        sys.exit(77)
    fixture.main()
