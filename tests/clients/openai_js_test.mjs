// The official JavaScript client against a server at the URL given. Started by openai_js_test.py.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import OpenAI from 'openai';

const baseURL = process.env.SERVER_URL + '/v1';
const client = new OpenAI({ baseURL, apiKey: 'none', maxRetries: 0 });
const messages = [
  { role: 'system', content: 'You are a helpful assistant.' },
  { role: 'user', content: 'What is the capital of France?' },
];
const answer = 'The capital of France is Paris.';
const ask = (fields) => client.chat.completions.create({ model: 'any', messages, temperature: 0, ...fields });

test('whole answer', async () => {
  const completion = await ask({});
  assert.equal(completion.choices[0].message.content, answer);
  assert.equal(completion.choices[0].finish_reason, 'stop');
  assert.equal(completion.usage.completion_tokens, 8);
});

test('stream', async () => {
  let text = '', usage = null, reasons = [];
  const ids = new Set();
  for await (const chunk of await ask({ stream: true, stream_options: { include_usage: true } })) {
    ids.add(chunk.id);
    text += chunk.choices[0]?.delta.content ?? '';
    if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, answer);
  assert.deepEqual(reasons, ['stop']);
  assert.equal(usage.completion_tokens, 8);
  assert.equal(ids.size, 1);
});

test('stream helper, which insists on role and finish_reason', async () => {
  const stream = client.chat.completions.stream({ model: 'any', messages, temperature: 0, n: 2 });
  const completion = await stream.finalChatCompletion();
  assert.deepEqual(completion.choices.map((choice) => choice.message.content), [answer, answer]);
});

test('leaving a stream', async () => {
  const stream = await ask({ messages: [{ role: 'user', content: 'Count to a thousand.' }], max_tokens: 2000, stream: true });
  let chunks = 0;
  for await (const _ of stream) if (++chunks === 5) break;
  assert.equal(chunks, 5);
});

test('n, stop, logprobs', async () => {
  const completion = await ask({ n: 3, stop: ' Paris', logprobs: true, top_logprobs: 2 });
  assert.deepEqual(completion.choices.map((choice) => choice.message.content), Array(3).fill('The capital of France is'));
  for (const choice of completion.choices)
    for (const entry of choice.logprobs.content) {
      assert.equal(new TextDecoder().decode(new Uint8Array(entry.bytes)), entry.token);
      assert.equal(entry.top_logprobs.length, 2);
    }
});

test('completions', async () => {
  const completion = await client.completions.create({ model: 'any', prompt: 'The capital of France is', temperature: 0, max_tokens: 2 });
  assert.match(completion.choices[0].text, /^ Paris/);
  let text = '';
  for await (const chunk of await client.completions.create({ model: 'any', prompt: 'The capital of France is', temperature: 0, max_tokens: 2, stream: true }))
    text += chunk.choices[0]?.text ?? '';
  assert.equal(text, completion.choices[0].text);
});

test('models', async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  assert.equal(models.length, 1);
  assert.equal(models[0].max_model_len, 8192);
  assert.equal((await client.models.retrieve(models[0].id)).id, models[0].id);
  await assert.rejects(client.models.retrieve('gpt-4'), (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found');
});

test('errors are typed', async () => {
  await assert.rejects(ask({ temperature: -1 }), (error) => error instanceof OpenAI.BadRequestError && error.param === 'temperature');
  await assert.rejects(ask({ messages: [{ role: 'user', content: 'word '.repeat(9000) }], stream: true }),
    (error) => error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded' && /maximum context length is 8192 tokens/.test(error.message));
  await assert.rejects(ask({ response_format: { type: 'json_object' } }), (error) => error.status === 400 && error.param === 'response_format');
});
