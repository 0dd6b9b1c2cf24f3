import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { hostileText, longText, richText } from './mock_server.mjs';
import { importPageModule, resolveInWeb, seeded } from './support.mjs';

const { MarkdownStream, renderMarkdown, heldBackChars, closeInline, allowedUrl } = await importPageModule('markdown');
const { marked } = await import(pathToFileURL(resolveInWeb('marked')));

const plain = (blocks) => blocks.map((block) => (block.kind === 'code'
  ? `<code ${block.language}>${block.text}` : block.html)).join('\n');
const html = (source) => plain(renderMarkdown(source)).trim();

const documents = {
  rich: richText,
  long: longText().slice(0, 6000),
  hostile: hostileText,
  setext: 'Title\n=====\n\nSub\n---\ntext\n\n---\nafter',
  lists: '- a\n- b\n\n- c\n\n  more\n\n1. one\n2. two\n   - deep\n     - deeper\n3. three\n\nend\n* star\n* more',
  longList: Array.from({ length: 120 }, (_, n) => `${n + 1}. item **${n}** with some words in it\n   - inner ${n}`).join('\n') + '\n\nafter',
  looseList: Array.from({ length: 80 }, (_, n) => `- item ${n} with \`code\` in it\n\n  second paragraph ${n}\n`).join('\n') + '\nend',
  fences: 'a\n```js\nx = 1\n\n\n``` not closing\n````\n\n~~~~ py\n~~~\n```\n~~~~\ntext\n```\n\n    indented\n    code\n\nend\n```\nunclosed\n',
  fenceInList: '1. first:\n   ```sh\n   ls -l\n\n   pwd\n   ```\n2. second\n\n> quote\n> ```\n> x\n> ```\nlazy\n',
  tables: '| a | b |\n|:--|--:|\n| 1 | 2 |\n| 3 | `4|` |\n\nno table | here\n\n| head only |\n\na|b\n-|-\n1|2\ntext after',
  links: 'See [one][1] and [two], ![pic][1].\n\nMore *text*.\n\n[1]: https://example.org/one "t"\n[two]: https://example.org/two\n\nlast',
  crlf: 'one\r\n\r\n- a\r\n- b\r\n\r\n```\r\ncode\r\n```\r\n',
  tasks: '- [x] done\n- [ ] open\n',
  html: 'before <b>bold</b> <span onclick=x>y</span><br>\n\n<details>\n<summary>more</summary>\n\nhidden *text*\n\n</details>\n\n<!-- note -->\nend',
  emphasis: '**bold *both* bold** _it_ ~~gone~~ `a*b` 2*3*4 snake_case_name **unclosed',
  empty: '',
  blank: '\n\n  \n',
};

test('streamed in any pieces, a text ends as if parsed at once', () => {
  for (const [name, source] of Object.entries(documents)) {
    const expected = plain(renderMarkdown(source));
    for (let seed = 0; seed < 25; seed++) {
      const random = seeded(seed);
      const stream = new MarkdownStream();
      const size = [1, 3, 8, 40][seed % 4];
      for (let at = 0; at < source.length;) {
        const length = 1 + Math.floor(random() * size);
        stream.append(source.slice(at, at + length));
        at += length;
        if (random() < 0.7) stream.flush();
      }
      stream.finish();
      assert.equal(plain(stream.blocks), expected, `${name}, seed ${seed}`);
    }
  }
});

// The parser's own rendering of the whole text, without our renderer and our cutting, says what must be there.
test('no word is lost or added', () => {
  const words = (text) => text.replace(/<input checked[^>]*>/g, '☑ ').replace(/<input[^>]*>/g, '☐ ').replace(/<\/?[a-z][^>]*>/gi, ' ')
    .replace(/&#39;/g, "'").replace(/&quot;/g, '"').replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&')
    .split(/\s+/).filter((word) => word !== '');
  for (const [name, source] of Object.entries(documents)) {
    if (['hostile', 'html', 'links'].includes(name)) continue; // those render differently on purpose
    const ours = renderMarkdown(source).map((block) => (block.kind === 'code'
      ? block.text.replace(/&/g, '&amp;').replace(/</g, '&lt;') : block.html)).join(' ');
    assert.deepEqual(words(ours), words(marked.parse(source)), name);
  }
});

test('finished blocks stay the same objects while later ones arrive', () => {
  const stream = new MarkdownStream();
  let before = [];
  let kept = 0;
  for (const char of longText().slice(0, 5000)) {
    stream.append(char);
    stream.flush();
    const now = stream.blocks;
    for (let at = 0; at < before.length - 1; at++) {
      assert.equal(now[at], before[at]);
      kept++;
    }
    before = now;
  }
  assert.ok(kept > 1000);
});

test('the work is linear in the length, whatever the shape', () => {
  const word = (n) => ['alpha', '**beta**', '`gamma`', 'delta'][n % 4];
  const repeat = (count, make) => Array.from({ length: count }, (_, n) => make(n)).join('');
  const shapes = {
    sections: (size) => repeat(size / 100, (n) => `## Part ${n}\n\n${repeat(14, (m) => word(n + m) + ' ')}\n\n`),
    paragraph: (size) => repeat(size / 6, (n) => word(n) + ' '),
    list: (size) => repeat(size / 30, (n) => `- item ${n} ${word(n)} and more\n`),
    item: (size) => '- ' + repeat(size / 6, (n) => word(n) + ' '),
    table: (size) => '| a | b |\n|---|---|\n' + repeat(size / 20, (n) => `| ${n} | ${word(n)} |\n`),
    code: (size) => '```js\n' + repeat(size / 20, (n) => `const x${n} = ${n};\n`),
    quote: (size) => repeat(size / 30, (n) => `> line ${n} ${word(n)} of a quote\n`),
    nested: (size) => repeat(size / 40, (n) => `${'  '.repeat(n % 8)}- item ${n} ${word(n)}\n`),
  };
  for (const [name, make] of Object.entries(shapes)) {
    const work = (size) => {
      const source = make(size);
      const stream = new MarkdownStream(() => 0); // a clock that stands: no parse is put off for its duration
      let flushes = 0;
      for (let at = 0; at < source.length; at += 4) {
        stream.append(source.slice(at, at + 4));
        stream.flush();
        flushes++;
      }
      stream.finish();
      // The promise: at most 64 characters parsed for each one received, besides open blocks under 1 KiB.
      assert.ok(stream.parsedChars <= 64 * source.length + 1024 * flushes + 3 * source.length, `${name}: ${stream.parsedChars} of ${source.length}`);
      return stream.parsedChars / source.length;
    };
    const [small, large] = [work(12_500), work(50_000)];
    assert.ok(large < 1.5 * small + 8, `${name}: ${small.toFixed(1)} then ${large.toFixed(1)} characters of work for one`);
  }
});

test('after a slow parse of a large block the next one waits eight times as long', () => {
  let now = 0;
  const stream = new MarkdownStream(() => (now += 5)); // every parse "takes" 5 ms
  stream.append('word '.repeat(1000));
  stream.flush();
  const first = stream.parsedChars;
  for (let n = 0; n < 7; n++) {
    stream.append('more ');
    stream.flush();
  }
  assert.equal(stream.parsedChars, first);
  stream.append('more ');
  stream.flush();
  assert.ok(stream.parsedChars > first);
});

test('degenerate and deeply nested texts end, and are shown', () => {
  const size = 20_000;
  for (const unit of ['[', '![', '*', '**a ', '_a_', '`', '<', '<b>', '> ', '- ', '  - a\n', '|', '|a|\n|-|\n', '((', '](', '&', '\\', '~~', '#', '1. ', '\t', 'a\n=\n']) {
    const source = unit.repeat(size / unit.length);
    const stream = new MarkdownStream();
    for (let at = 0; at < source.length; at += 500) {
      stream.append(source.slice(at, at + 500));
      stream.flush();
    }
    stream.finish();
    if (/\S/.test(unit.replace(/[#=|-]/g, ''))) assert.ok(stream.blocks.length > 0, unit);
  }
});

test('code: language, text, closing', () => {
  assert.deepEqual(renderMarkdown('```c++ title=x\na < b\n\n```').map(({ kind, language, text, open }) => ({ kind, language, text, open })),
    [{ kind: 'code', language: 'c++', text: 'a < b\n', open: false }]);
  assert.equal(renderMarkdown('```"><script>\nx\n```')[0].language, 'script');
  const stream = new MarkdownStream();
  stream.append('```py\nprint(1)\n``');
  stream.flush();
  assert.deepEqual([stream.blocks[0].text, stream.blocks[0].open], ['print(1)\n', true]);
  stream.append('`\n\nafter');
  stream.flush();
  assert.deepEqual([stream.blocks[0].text, stream.blocks[0].open], ['print(1)', false]);
});

test('hostile Markdown: nothing that acts, loads or styles leaves the renderer', () => {
  const result = plain(renderMarkdown(hostileText));
  const tags = [...result.matchAll(/<[a-z][^>]*>/gi)].map(([tag]) => tag);
  for (const tag of tags) assert.match(tag, /^<(?:p|a href="https:\/\/[^"]*")>$/);
  assert.ok(result.includes('&lt;script&gt;window.pwned = 1&lt;/script&gt;'));
  assert.ok(!/href="(?:javascript|data):/i.test(result));
});

test('pictures from elsewhere become links', () => {
  assert.equal(html('![a "b"](https://x.example/p.png?q=1&r=2)'), '<p><a href="https://x.example/p.png?q=1&amp;r=2">Image: a &quot;b&quot;</a></p>');
  assert.equal(html('![](data:image/png;base64,AAAA)'), '<p>Image: without a description</p>');
  assert.equal(html('![a](/local.png)'), '<p>Image: a</p>');
});

test('links: only addresses that lead elsewhere by a known way', () => {
  for (const url of ['https://a.example', 'http://a.example/', 'HTTPS://A', 'mailto:a@b.c', 'tel:123']) assert.ok(allowedUrl(url), url);
  for (const url of ['javascript:alert(1)', ' https://a', 'java\nscript:x', 'data:text/html,x', 'vbscript:x', 'file:///etc', '//host', '/path', '#x', 'blob:x', 'https:a']) assert.ok(!allowedUrl(url), url);
  assert.equal(html('[x](javascript:alert(1))'), '<p>x</p>');
  assert.equal(html('<javascript:alert(1)>'), '<p>javascript:alert(1)</p>');
  assert.equal(html('[a](https://x.example/"onmouseover="y)'), '<p><a href="https://x.example/&quot;onmouseover=&quot;y">a</a></p>');
});

test('prose tags work, others are shown', () => {
  assert.equal(html('a<br>b H<sub>2</sub>O <kbd>X</kbd>'), '<p>a<br>b H<sub>2</sub>O <kbd>X</kbd></p>');
  assert.equal(html('use a <div class="x"> here'), '<p>use a &lt;div class=&quot;x&quot;&gt; here</p>');
  assert.equal(html('<b onclick=x>y</b>'), '<p>&lt;b onclick=x&gt;y</b></p>');
});

test('headings start below the page and never skip a level', () => {
  const levels = (source) => [...html(source).matchAll(/<h(\d) class="md-h(\d)"/g)].map(([, level, depth]) => `${level}/${depth}`);
  assert.deepEqual(levels('# a\n\n## b\n\n###### c\n\n# d'), ['3/1', '4/2', '5/6', '3/1']);
  assert.deepEqual(levels('#### a\n\n#### b\n\n##### c'), ['3/4', '4/4', '5/5']);
});

test('marks that may still become something else are held back', () => {
  const shown = (source) => source.slice(0, source.length - heldBackChars(source));
  for (const mark of ['-', '==', '1', '12.', '#', '```', '~~', '>', '- [', '- [x', '* ']) assert.equal(shown(`text\n${mark}`), 'text\n', mark);
  assert.equal(shown('a - b'), 'a - b');
  assert.equal(shown('text\n\n| head | two'), 'text\n\n');
  assert.equal(shown('text\n\n| head |\n|--'), 'text\n\n');
  assert.equal(shown('| head |\n|---|\n| a'), '| head |\n|---|\n| a');
  const stream = new MarkdownStream();
  stream.append('Title\n-');
  stream.flush();
  assert.equal(plain(stream.blocks), '<p>Title</p>\n');
});

test('open bold, code and links do not flash their marks', () => {
  assert.equal(closeInline('a **bo'), 'a **bo**');
  assert.equal(closeInline('a **'), 'a ');
  assert.equal(closeInline('a **bo*'), 'a **bo**');
  assert.equal(closeInline('a `co'), 'a `co`');
  assert.equal(closeInline('a `co`'), 'a `co`');
  assert.equal(closeInline('see [the page](https://exam'), 'see the page');
  assert.equal(closeInline('see ![alt](https://exam'), 'see alt');
  assert.equal(closeInline('see [the'), 'see the');
  assert.equal(closeInline('- [ ] a'), '- [ ] a');
  assert.equal(closeInline('**done**\n\nnext'), '**done**\n\nnext');
});
