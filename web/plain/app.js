// The plain page: embedded when the program is built without Node. No build step, no library, text only.
'use strict';
const $ = (id) => document.getElementById(id);
const log = $('log');
let messages = [];
let running = null;  // AbortController
let model = 'default';

const savedKey = () => sessionStorage.getItem('hearth.key') || '';
const headers = () => Object.assign({ 'Content-Type': 'application/json' }, savedKey() ? { Authorization: 'Bearer ' + savedKey() } : {});

function add(className, text) {
  const stick = log.scrollHeight - log.scrollTop - log.clientHeight < 48;
  const element = document.createElement('div');
  element.className = className;
  element.textContent = text;
  log.append(element);
  if (stick) log.scrollTop = log.scrollHeight;
  return element;
}

// Calls onData with each event's data; lines may end in LF or CRLF, characters may be split anywhere.
async function readEvents(body, onData) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', data = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.replace(/\r$/, '');
      if (line === '') {
        if (data.length) onData(data.join('\n'));
        data = [];
      } else if (line.startsWith('data:')) {
        data.push(line.slice(line[5] === ' ' ? 6 : 5));
      }
    }
  }
}

async function send(text) {
  const chat = messages;  // "New chat" puts another list in its place
  chat.push({ role: 'user', content: text });
  $('hello')?.remove();
  add('user', text);
  log.scrollTop = log.scrollHeight;
  const answer = add('answer', '');
  const stats = add('stats', 'Waiting…');
  running = new AbortController();
  $('send').hidden = true;
  $('stop').hidden = false;
  $('status').textContent = 'Generating';

  const start = performance.now();
  let content = '', first = 0, tokens = 0, finish = '', outcome = '', painting = false, ended = false;
  const paint = () => {
    painting = false;
    if (ended) return;  // the last frame comes after the last word
    const stick = log.scrollHeight - log.scrollTop - log.clientHeight < 48;
    answer.textContent = content;
    if (first) stats.textContent = figures(tokens, first - start, performance.now() - first);
    if (stick) log.scrollTop = log.scrollHeight;
  };
  try {
    const response = await fetch('/v1/chat/completions', {
      method: 'POST', headers: headers(), signal: running.signal,
      body: JSON.stringify({ model, messages: chat, stream: true, stream_options: { include_usage: true } }),
    });
    if (!response.ok) {
      const error = await response.json().catch(() => null);
      const wait = response.headers.get('Retry-After');
      if (response.status === 401) askKey();
      throw new Error((error?.error?.message || 'HTTP ' + response.status) + (response.status === 429 && wait ? ` Try again in ${wait} s.` : ''));
    }
    await readEvents(response.body, (data) => {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message || 'The server reported an error.');
      const choice = chunk.choices?.[0];
      if (choice?.delta?.content) {
        if (!first) first = performance.now();
        content += choice.delta.content;
        tokens++;
      }
      if (choice?.finish_reason) finish = choice.finish_reason;
      if (chunk.usage) tokens = chunk.usage.completion_tokens;
      if (!painting) { painting = true; requestAnimationFrame(paint); }
    });
    if (!finish) throw new Error('The connection was lost; the text so far is kept.');
    outcome = finish === 'length' ? 'Ended at the token limit.' : '';
  } catch (error) {
    outcome = error.name === 'AbortError' ? 'Stopped.' : error instanceof TypeError ? 'The connection was lost; the text so far is kept.' : error.message;
  }
  const line = first ? figures(tokens, first - start, performance.now() - first) : '';
  paint();
  ended = true;
  stats.textContent = [line, outcome].filter(Boolean).join('  ·  ');
  stats.classList.toggle('error', Boolean(outcome) && outcome !== 'Stopped.');
  if (content) {
    chat.push({ role: 'assistant', content });
  } else {
    chat.pop();  // nothing came: the question may be asked again
    if (chat === messages) $('text').value ||= text;
  }
  running = null;
  $('send').hidden = false;
  $('stop').hidden = true;
  $('status').textContent = outcome || 'Done';
}

function figures(tokens, ttftMs, decodeMs) {
  const rate = tokens > 1 && decodeMs > 0 ? `${((tokens - 1) / decodeMs * 1000).toFixed(1)} tok/s  ·  ` : '';
  return `${rate}first token ${(ttftMs / 1000).toFixed(2)} s  ·  ${tokens} tokens`;
}

function askKey() {
  $('key-form').hidden = false;
  $('key').focus();
}

$('composer').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('text').value.trim();
  if (!text || running) return;
  $('text').value = '';
  send(text);
});
$('text').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && event.keyCode !== 229) {
    event.preventDefault();
    $('composer').requestSubmit();
  }
});
document.addEventListener('keydown', (event) => { if (event.key === 'Escape') running?.abort(); });
$('stop').addEventListener('click', () => running?.abort());
$('new').addEventListener('click', () => {
  running?.abort();
  messages = [];
  log.replaceChildren();
  $('text').focus();
});
$('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('hearth.key', $('key').value.trim());
  $('key').value = '';
  $('key-form').hidden = true;
  showModel();
  $('text').focus();
});

async function showModel() {
  const response = await fetch('/v1/models', { headers: headers() }).catch(() => null);
  if (response?.status === 401) return askKey();
  const first = response?.ok ? (await response.json()).data?.[0] : null;
  if (first) { model = first.id; $('model').textContent = first.id; }
}
showModel();
