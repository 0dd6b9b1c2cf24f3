#!/usr/bin/env python3
"""The official Python client against the built program: what it sends must be understood, what it reads must be whole."""
import unittest

import server_fixture as fixture

fixture.use_test_python()

try:
    import openai
except ImportError:
    print("skipped: the Python package openai is not installed")
    raise SystemExit(77)


class OpenAiPython(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = fixture.Server("--alias", "smol")
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.__exit__(None, None, None)

    def chat(self, **fields):
        return self.client.chat.completions.create(model="any", messages=fields.pop("messages", fixture.PARIS), temperature=0, **fields)

    def test_whole_answer(self):
        answer = self.chat()
        self.assertEqual(answer.choices[0].message.content, "The capital of France is Paris.")
        self.assertEqual(answer.choices[0].message.role, "assistant")
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.model, "smol")
        self.assertEqual(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens)
        self.assertGreaterEqual(answer.usage.prompt_tokens_details.cached_tokens, 0)

    def test_stream(self):
        chunks = list(self.chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), "The capital of France is Paris.")
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual([c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason], ["stop"])
        self.assertEqual(len({c.id for c in chunks}), 1)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, 8)

    def test_stream_helper(self):
        """The client's own accumulator: it insists on a role, an index and a finish_reason."""
        with self.client.chat.completions.stream(model="any", messages=fixture.PARIS, temperature=0) as stream:
            for _ in stream:
                pass
            self.assertEqual(stream.get_final_completion().choices[0].message.content, "The capital of France is Paris.")

    def test_leaving_a_stream(self):
        stream = self.chat(messages=[{"role": "user", "content": "Count to a thousand."}], stream=True, max_tokens=2000)
        for i, _ in enumerate(stream):
            if i == 5:
                break
        stream.close()
        self.server.wait_idle()

    def test_n_and_stop(self):
        answer = self.chat(n=3, stop=[" Paris"])
        self.assertEqual([c.message.content for c in answer.choices], ["The capital of France is"] * 3)
        self.assertEqual([c.finish_reason for c in answer.choices], ["stop"] * 3)
        self.assertEqual([c.index for c in answer.choices], [0, 1, 2])

    def test_length(self):
        answer = self.chat(max_completion_tokens=3)
        self.assertEqual(answer.choices[0].finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 3)

    def test_logprobs(self):
        answer = self.chat(logprobs=True, top_logprobs=3)
        entries = answer.choices[0].logprobs.content
        self.assertEqual("".join(e.token for e in entries), answer.choices[0].message.content)
        for entry in entries:
            self.assertEqual(bytes(entry.bytes).decode(), entry.token)
            self.assertEqual(len(entry.top_logprobs), 3)
            self.assertLessEqual(entry.logprob, 0)
            self.assertEqual(entry.top_logprobs[0].token, entry.token)  # greedy takes the most probable
            self.assertGreaterEqual(entry.top_logprobs[0].logprob, entry.top_logprobs[1].logprob)
        streamed = [e for c in self.chat(logprobs=True, top_logprobs=3, stream=True) if c.choices and c.choices[0].logprobs
                    for e in c.choices[0].logprobs.content]
        self.assertEqual([(e.token, e.logprob) for e in streamed], [(e.token, e.logprob) for e in entries])

    def test_completions(self):
        prompt = "The capital of France is"
        answer = self.client.completions.create(model="any", prompt=prompt, temperature=0, max_tokens=2, logprobs=2)
        self.assertTrue(answer.choices[0].text.startswith(" Paris"), answer.choices[0].text)
        logprobs = answer.choices[0].logprobs
        self.assertEqual("".join(logprobs.tokens), answer.choices[0].text)
        self.assertEqual(logprobs.text_offset, [0, len(logprobs.tokens[0])])
        self.assertEqual(len(logprobs.top_logprobs[0]), 2)
        chunks = list(self.client.completions.create(model="any", prompt=prompt, temperature=0, max_tokens=2, stream=True))
        self.assertEqual("".join(c.choices[0].text for c in chunks if c.choices), answer.choices[0].text)
        echo = self.client.completions.create(model="any", prompt=[prompt, "1 2 3"], temperature=0, max_tokens=2, echo=True)
        self.assertEqual(echo.choices[0].text, prompt + answer.choices[0].text)
        self.assertTrue(echo.choices[1].text.startswith("1 2 3"))

    def test_seed(self):
        texts = {self.client.chat.completions.create(model="any", messages=fixture.PARIS, seed=7, temperature=1.5, max_tokens=12).choices[0].message.content
                 for _ in range(3)}
        self.assertEqual(len(texts), 1)

    def test_models(self):
        models = self.client.models.list().data
        self.assertEqual([m.id for m in models], ["smol"])
        self.assertEqual(models[0].max_model_len, 8192)
        self.assertEqual(self.client.models.retrieve("smol").owned_by, "hearth")
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.models.retrieve("gpt-4")
        self.assertEqual(caught.exception.code, "model_not_found")

    def test_errors_are_typed(self):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(max_tokens=-1)
        self.assertEqual(caught.exception.param, "max_tokens")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
        self.assertEqual(caught.exception.param, "tools")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(messages=[{"role": "user", "content": "word " * 9000}])
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        self.assertRegex(caught.exception.message, r"maximum context length is 8192 tokens.*resulted in 90\d\d tokens")

    def test_extension_fields(self):
        answer = self.chat(max_tokens=20, extra_body={"ignore_eos": True, "top_k": 5, "min_p": 0.1, "return_tokens": True, "cache_prompt": False})
        self.assertEqual(answer.usage.completion_tokens, 20)
        self.assertEqual(len(answer.choices[0].tokens), 20)
        answer = self.chat(extra_body={"min_tokens": 12}, max_tokens=20)
        self.assertGreaterEqual(answer.usage.completion_tokens, 12)
        raw = self.client.chat.completions.with_raw_response.create(model="any", messages=fixture.PARIS, max_tokens=1, extra_body={"frobnicate": 1})
        self.assertEqual(raw.headers["x-hearth-ignored"], "frobnicate")


class Overload(unittest.TestCase):
    def test_retries_on_429(self):
        """One runs, one waits, the others are told to come back: the client's own retries get every answer in the end."""
        with fixture.Server("--max-queue", "1", "--max-sequences", "1") as server:
            refusing = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
            patient = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=8)

            def ask(client):
                return client.chat.completions.create(model="any", messages=fixture.PARIS, temperature=0, max_tokens=60, extra_body={"ignore_eos": True})

            def outcome():
                try:
                    return ask(refusing).usage.completion_tokens
                except openai.RateLimitError as refusal:
                    self.assertGreaterEqual(int(refusal.response.headers["retry-after"]), 1)
                    self.assertEqual(refusal.code, "queue_full")
                    return "429"

            outcomes = fixture.together([outcome] * 6)
            self.assertIn("429", outcomes)
            self.assertIn(60, outcomes)
            answers = fixture.together([lambda: ask(patient)] * 4)
            self.assertEqual([a.usage.completion_tokens for a in answers], [60] * 4)
            server.wait_idle()


if __name__ == "__main__":
    fixture.main()
