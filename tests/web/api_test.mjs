import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importPageModule } from './support.mjs';

const { streamChat, fetchModel, partsOf, retryAfter, ApiError } = await importPageModule('api');
const { turnsOf } = await importPageModule('chat');

// Puts a fake in the place of fetch for one call; returns what was asked.
function fake(makeResponse) {
  const asked = [];
  globalThis.fetch = async (url, options) => {
    asked.push({ url, ...options });
    return makeResponse();
  };
  return asked;
}

function sse(...pieces) {
  return () => new Response(new ReadableStream({
    start(controller) {
      for (const piece of pieces) {
        if (piece instanceof Error) return controller.error(piece);
        controller.enqueue(new TextEncoder().encode(piece));
      }
      controller.close();
    },
  }), { status: 200, headers: { 'Content-Type': 'text/event-stream' } });
}

function refusal(status, error, headers = {}) {
  return () => new Response(JSON.stringify({ error }), { status, headers });
}

async function collect(makeResponse, signal = new AbortController().signal) {
  fake(makeResponse);
  const parts = [];
  try {
    for await (const part of streamChat({ model: 'm', messages: [] }, '', signal)) parts.push(part);
    return { parts, error: null };
  } catch (error) {
    return { parts, error };
  }
}

const text = (content) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';
const usage = 'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"timings":{"predicted_per_second":50.5}}\n\n';

test('a whole answer, with usage and timings', async () => {
  const { parts, error } = await collect(sse(text(''), text('Par'), text('is'), finish, usage, 'data: [DONE]\n\n'));
  assert.equal(error, null);
  assert.deepEqual(parts, [
    { kind: 'text', text: 'Par' }, { kind: 'text', text: 'is' }, { kind: 'finish', reason: 'stop' },
    { kind: 'usage', usage: { promptTokens: 9, cachedTokens: 4, completionTokens: 2, tokensPerSecond: 50.5 } },
  ]);
});

test('nothing is read after [DONE]; its absence is no fault once the answer has ended', async () => {
  assert.equal((await collect(sse(text('a'), finish, 'data: [DONE]\n\n', 'data: nonsense\n\n'))).error, null);
  assert.equal((await collect(sse(text('a'), finish))).error, null);
});

test('a stream that ends or breaks early is a lost connection, the text before it is kept', async () => {
  for (const response of [sse(text('a')), sse(text('a'), new TypeError('network'))]) {
    const { parts, error } = await collect(response);
    assert.equal(error.kind, 'network');
    // An error drops what the platform had queued but not yet handed over, so the text may have come or not.
    assert.ok(parts.length <= 1);
  }
});

test('an error chunk ends the answer with its message', async () => {
  const { parts, error } = await collect(sse(text('a'), 'data: {"error":{"message":"bad number","type":"server_error","code":null}}\n\n'));
  assert.deepEqual(parts, [{ kind: 'text', text: 'a' }]);
  assert.ok(error instanceof ApiError);
  assert.deepEqual([error.kind, error.message], ['server', 'bad number']);
});

test('what is not a chunk is an error of the server, not of the page', () => {
  assert.throws(() => partsOf('<html>'), (error) => error instanceof ApiError && error.kind === 'server');
  assert.deepEqual(partsOf('null'), []);
  assert.deepEqual(partsOf('{"choices":[{"delta":{"content":null},"finish_reason":null}]}'), []);
  assert.deepEqual(partsOf('{"choices":[],"usage":null}'), []);
  assert.deepEqual(partsOf('{"choices":[],"usage":{"prompt_tokens":"x","completion_tokens":-1}}'),
    [{ kind: 'usage', usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, tokensPerSecond: null } }]);
});

test('refusals by status and code', async () => {
  const cases = [
    [refusal(401, { message: 'key', code: 'invalid_api_key' }), 'auth', 'key', null],
    [refusal(429, { message: 'full' }, { 'Retry-After': '7' }), 'busy', 'full', 7],
    [refusal(503, { message: 'loading' }), 'starting', 'loading', null],
    [refusal(400, { message: '9 of 8', code: 'context_length_exceeded' }), 'context', '9 of 8', null],
    [refusal(400, { message: 'bad top_p' }), 'refused', 'bad top_p', null],
    [refusal(500, 'plain text'), 'server', 'plain text', null],
    [() => new Response('<h1>Bad gateway</h1>', { status: 502 }), 'server', 'The server answered 502.', null],
  ];
  for (const [response, kind, message, seconds] of cases) {
    const { error } = await collect(response);
    assert.deepEqual([error.kind, error.message, error.retryAfterSeconds], [kind, message, seconds]);
  }
});

test('an abort stays an abort', async () => {
  const { error } = await collect(() => { throw new DOMException('stop', 'AbortError'); });
  assert.equal(error.name, 'AbortError');
});

test('the key travels as a bearer token, and only if there is one', async () => {
  for (const [key, header] of [['', undefined], ['abc', 'Bearer abc']]) {
    const asked = fake(sse(finish));
    for await (const _ of streamChat({ model: 'm', messages: [], temperature: 0 }, key, new AbortController().signal));
    assert.equal(asked[0].headers.Authorization, header);
    const body = JSON.parse(asked[0].body);
    assert.deepEqual([body.stream, body.stream_options, body.temperature, 'max_tokens' in body], [true, { include_usage: true }, 0, false]);
  }
});

test('the model entry', async () => {
  const entry = (value) => () => new Response(JSON.stringify(value), { status: 200 });
  fake(entry({ data: [{ id: 'smol', max_model_len: 2048, default_max_tokens: 512, sampling_defaults: { temperature: 0.8, top_p: 0.95 } }] }));
  assert.deepEqual(await fetchModel(''), { id: 'smol', contextTokens: 2048, defaults: { temperature: 0.8, topP: 0.95, maxTokens: 512 } });
  fake(entry({ data: [{ id: 'smol', context_length: 512 }] }));
  assert.deepEqual(await fetchModel(''), { id: 'smol', contextTokens: 512, defaults: { temperature: null, topP: null, maxTokens: null } });
  fake(entry({ data: [] }));
  await assert.rejects(fetchModel(''), (error) => error.kind === 'server');
  fake(() => { throw new TypeError('refused'); });
  await assert.rejects(fetchModel(''), (error) => error.kind === 'network');
});

test('Retry-After: seconds or a date', () => {
  const now = Date.parse('2026-12-01T00:00:00Z');
  assert.equal(retryAfter('3', now), 3);
  assert.equal(retryAfter('Tue, 01 Dec 2026 00:00:30 GMT', now), 30);
  assert.equal(retryAfter('Mon, 30 Nov 2026 00:00:00 GMT', now), 0);
  for (const value of [null, '', 'soon']) assert.equal(retryAfter(value, now), null);
});

test('turns: speakers alternate although an answer never came', () => {
  const said = (role, content) => ({ role, text: content });
  assert.deepEqual(turnsOf([said('user', 'a'), said('assistant', ''), said('user', 'b'), said('assistant', 'c'), said('user', 'd')], ' '), [
    { role: 'user', content: 'a\n\nb' }, { role: 'assistant', content: 'c' }, { role: 'user', content: 'd' },
  ]);
  assert.deepEqual(turnsOf([said('user', 'a')], 'Be brief.')[0], { role: 'system', content: 'Be brief.' });
});
