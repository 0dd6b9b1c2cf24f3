// A stand-in for the program: serves a folder of page files under the page's real policy, and answers chat requests
// by a script that the last message names ("/busy ..." -> scripts.busy). Everything asked of it is in `requests`.
import { createServer } from 'node:http';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const csp = readFileSync(path.join(root, 'web/csp.txt'), 'ascii').trim();

const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8', '.svg': 'image/svg+xml', '.txt': 'text/plain; charset=utf-8' };
export const secretKey = 'open-sesame';
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const richText = `## Tea and coffee

Both wake you up, in **different** ways. Here is what matters most, with a [longer read](https://example.org/tea):

| | Tea | Coffee |
|---|:---:|---:|
| Caffeine in a cup | 40 mg | 95 mg |
| Feels like | a slow tide | a *quick* spark |
| Best before | the evening | noon |

1. Warm the pot first.
2. Use \`3 g\` of leaves for each cup:
   - green tea at 80 °C
   - black tea at 95 °C
3. Wait **three minutes**, no more.

> Patience is the better part of brewing.

\`\`\`python
def steep(leaves: float, minutes: int = 3) -> str:
    """Returns what a good cup needs."""
    if minutes > 5:
        raise ValueError("bitter")
    return f"{leaves:.1f} g for {minutes} min"
\`\`\`

So: tea for the long afternoon, coffee for the short morning. ☕`;

export const hostileText = `Look: <script>window.pwned = 1</script><img src=x onerror="window.pwned = 2"> end

<div style="position:fixed;inset:0;background:red" class="failure" id="app" onclick="window.pwned = 3">styled</div>

[bad](javascript:window.pwned=4) [data](data:text/html,x) [good](https://example.org/a?b=1&c="2")

![a picture](https://tracker.example/pixel.png?q=secret) and <img src="https://tracker.example/raw.png">

<svg><style><img src=x onerror=window.pwned=5></style></svg><math><mtext></mtext></math>

<form action="https://tracker.example/"><input name=a><button>Press</button></form><iframe src="https://tracker.example/"></iframe>

<a href="https://example.org/" style="color:red" target=_top>raw link</a>`;

// 25 KB of ordinary Markdown.
export function longText() {
  const part = [];
  for (let n = 1; part.join('').length < 25_000; n++) {
    part.push(`### Part ${n}\n\nSome **bold** words, \`code\` and a sentence that goes on for a while, part ${n}.\n\n- one ${n}\n- two ${n}\n\n\`\`\`js\nconst part = ${n};\n\`\`\`\n\n`);
  }
  return part.join('').trim();
}

// Pieces of about the size of a token.
export function tokensOf(text) {
  return (text.match(/\s*\S{1,5}/gs) ?? []).concat(text.match(/\s+$/) ?? []);
}

export async function startMock(folder) {
  const requests = []; // { path, body, headers, aborted }
  const attempts = new Map(); // script name -> times asked
  let release = () => {}; // lets /wait go on
  let loading = 0; // how often /v1/models still answers 503

  const chunk = (extra) => ({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'mock-model', choices: [], ...extra });
  const delta = (content, finish = null) => chunk({ choices: [{ index: 0, delta: content, logprobs: null, finish_reason: finish }] });
  const frame = (value) => `data: ${JSON.stringify(value)}\n\n`;

  function refuse(response, status, error, headers = {}) {
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { param: null, code: null, ...error } }));
  }

  function begin(response) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache, no-transform' });
    response.write(frame(delta({ role: 'assistant', content: '' })));
  }

  async function stream(response, text, eachMs, { finish = 'stop', usage = true } = {}) {
    begin(response);
    const tokens = tokensOf(text);
    for (const token of tokens) {
      if (response.destroyed) return;
      response.write(frame(delta({ content: token })));
      if (eachMs > 0) await pause(eachMs);
    }
    response.write(frame(delta({}, finish)));
    if (usage) {
      response.write(frame(chunk({
        usage: { prompt_tokens: 31, completion_tokens: tokens.length, total_tokens: 31 + tokens.length, prompt_tokens_details: { cached_tokens: 16 } },
        timings: { predicted_per_second: 123.4 },
      })));
    }
    response.write('data: [DONE]\n\n');
    response.end();
  }

  const scripts = {
    echo: (response, body) => stream(response, `You said ${body.messages.length} messages.`, 1),
    slow: (response) => stream(response, 'one two three four five six seven eight nine ten eleven twelve', 120),
    endless: (response) => stream(response, 'again and again '.repeat(2000), 20),
    rich: (response) => stream(response, richText, 2),
    hostile: (response) => stream(response, hostileText, 1),
    long: (response) => stream(response, longText(), 0.2),
    length: (response) => stream(response, 'cut off here', 1, { finish: 'length' }),
    plain: (response) => stream(response, 'No figures from me.', 5, { usage: false }),
    empty: (response) => stream(response, '', 0),
    wait: async (response) => { await new Promise((resolve) => { release = resolve; }); await stream(response, 'At last.', 1); },
    waitlong: async (response) => { await pause(60_000); response.end(); },
    error: async (response) => {
      begin(response);
      for (const token of tokensOf('This was going well until')) response.write(frame(delta({ content: token })));
      await pause(50);
      response.write(frame({ error: { message: 'The engine met a bad number.', type: 'server_error', code: 'engine_error' } }));
      response.end();
    },
    cut: async (response) => {
      begin(response);
      for (const token of tokensOf('Half of an answer')) response.write(frame(delta({ content: token })));
      await pause(150);
      response.destroy();
    },
    busy: (response) => {
      const times = (attempts.get('busy') ?? 0) + 1;
      attempts.set('busy', times);
      if (times === 1) return refuse(response, 429, { message: '64 requests are waiting.', type: 'rate_limit_error', code: 'queue_full' }, { 'Retry-After': '3' });
      return stream(response, 'Now there is room.', 1);
    },
    context: (response) => refuse(response, 400, {
      message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
      type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded',
    }),
    loading: (response) => refuse(response, 503, { message: 'The model is loading.', type: 'unavailable_error', code: 'loading' }),
    key: (response, body, request) => (request.headers.authorization === `Bearer ${secretKey}`
      ? stream(response, 'The key fits.', 1)
      : refuse(response, 401, { message: 'Incorrect API key provided.', type: 'authentication_error', code: 'invalid_api_key' }, { 'WWW-Authenticate': 'Bearer' })),
    // Bytes torn anywhere, CRLF, comments, no usage, no [DONE].
    torn: async (response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const text = ': ping\r\n' + ['Grüße ', '世界 ', '🔥🔥 ', 'fertig'].map((t) => `data:${JSON.stringify(delta({ content: t }))}\r\n\r\n`).join(': ping\n')
        + `data: ${JSON.stringify(delta({}, 'stop'))}\n\n`;
      for (const byte of Buffer.from(text)) {
        response.write(Buffer.from([byte]));
        await new Promise(setImmediate);
      }
      response.end();
    },
  };

  const server = createServer((request, response) => {
    const chunks = [];
    const url = new URL(request.url, 'http://mock');
    const entry = { path: url.pathname, headers: request.headers, body: null, aborted: false };
    requests.push(entry);
    response.on('close', () => { entry.aborted = !response.writableFinished; });
    request.on('data', (data) => chunks.push(data));
    request.on('end', () => {
      if (url.pathname === '/v1/models') {
        if (loading-- > 0) return refuse(response, 503, { message: 'The model is loading.', type: 'unavailable_error', code: 'loading' });
        response.writeHead(200, { 'Content-Type': 'application/json' });
        return response.end(JSON.stringify({ object: 'list', data: [{ id: 'mock-model', object: 'model', created: 1, owned_by: 'hearth', max_model_len: 8192 }] }));
      }
      if (url.pathname === '/v1/chat/completions' && request.method === 'POST') {
        entry.body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        const name = entry.body.messages.at(-1).content.split('\n').at(-1).match(/^\/(\w+)/)?.[1] ?? 'echo';
        return (scripts[name] ?? scripts.echo)(response, entry.body, request);
      }
      const file = path.join(folder, url.pathname === '/' ? 'index.html' : path.basename(url.pathname));
      if (!existsSync(file)) return refuse(response, 404, { message: 'Not found.', type: 'not_found_error' });
      response.writeHead(200, { 'Content-Type': types[path.extname(file)], 'Content-Security-Policy': csp, 'X-Content-Type-Options': 'nosniff' });
      response.end(readFileSync(file));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    requests,
    chats: () => requests.filter((entry) => entry.path === '/v1/chat/completions'),
    release: () => release(),
    failModels: (times) => { loading = times; },
    reset: () => { requests.length = 0; attempts.clear(); loading = 0; },
    close: () => { server.closeAllConnections(); return new Promise((resolve) => server.close(resolve)); },
  };
}

// By hand: node mock_server.mjs FOLDER
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await startMock(process.argv[2]);
  console.log(mock.url);
}
