import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importPageModule, seeded } from './support.mjs';

const { SseParser, eventCharsMax } = await importPageModule('sse');
const encode = (text) => new TextEncoder().encode(text);

function parse(bytes, cuts = []) {
  const parser = new SseParser();
  const events = [];
  let from = 0;
  for (const cut of [...cuts, bytes.length]) {
    events.push(...parser.push(bytes.subarray(from, cut)));
    from = cut;
  }
  return events;
}

// Each with the events that the standard (HTML, 9.2.6) gives, by hand.
const cases = [
  ['plain', 'data: a\n\ndata: b\n\n', ['a', 'b']],
  ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
  ['CR alone', 'data: a\r\rdata: b\r\r', ['a', 'b']],
  ['mixed line ends', 'data: a\r\n\ndata: b\n\r\n', ['a', 'b']],
  ['no space after the colon', 'data:a\n\n', ['a']],
  ['only one space is taken', 'data:  a\n\n', [' a']],
  ['several data lines', 'data: a\ndata: b\ndata:\n\n', ['a\nb\n']],
  ['data without a colon', 'data\n\n', ['']],
  ['comments', ': ping\n\n:\ndata: a\n: ping\n\n', ['a']],
  ['a comment with one newline before data', ': ping\ndata: a\n\n', ['a']],
  ['other fields', 'event: x\nid: 7\nretry: 10\ndata: a\n\n', ['a']],
  ['fields that only begin alike', 'database: x\ndatum\n\n', []],
  ['a colon inside the value', 'data: {"a":"b: c"}\n\n', ['{"a":"b: c"}']],
  ['byte order mark', '\ufeffdata: a\n\n', ['a']],
  ['blank lines', '\n\n\n\r\n\rdata: a\n\n\n\n', ['a']],
  ['unfinished event', 'data: a\n\ndata: b\n', ['a']],
  ['characters of 2 to 4 bytes', 'data: ü 世 🔥 e\u0301\n\n', ['ü 世 🔥 e\u0301']],
];

for (const [name, text, expected] of cases) {
  test(`events: ${name}, in one piece and cut at every two places`, () => {
    const bytes = encode(text);
    assert.deepEqual(parse(bytes), expected);
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        assert.deepEqual(parse(bytes, [first, second]), expected, `cut at ${first} and ${second}`);
      }
    }
  });
}

test('a long stream torn at random places', () => {
  const random = seeded(7);
  const expected = [];
  let text = '';
  for (let n = 0; n < 500; n++) {
    const value = `${n} ${'äß🔥 x'.repeat(Math.floor(random() * 5))}`;
    expected.push(value);
    const end = ['\n', '\r\n'][Math.floor(random() * 2)];
    text += `${random() < 0.3 ? `: ping${end}` : ''}data: ${value}${end}${end}`;
  }
  const bytes = encode(text);
  const cuts = Array.from({ length: 3000 }, () => Math.floor(random() * bytes.length)).sort((a, b) => a - b);
  assert.deepEqual(parse(bytes, cuts), expected);
});

test('an endless line is refused, not kept', () => {
  const parser = new SseParser();
  const piece = encode('x'.repeat(1024 * 1024));
  assert.throws(() => {
    for (let n = 0; n <= eventCharsMax / piece.length; n++) parser.push(piece);
  }, RangeError);
});
