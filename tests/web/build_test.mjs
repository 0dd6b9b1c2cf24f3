// The page as a build product: types, size, sameness, what is embedded.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { need, root, temporaryFolder, web } from './support.mjs';

need('esbuild');
need('typescript');
const pageBytesMax = 60 * 1024; // gzip, all that a first visit loads

function build() {
  const folder = temporaryFolder();
  execFileSync(process.execPath, [path.join(web, 'build.mjs'), folder]);
  return folder;
}
const folder = build();
const names = readdirSync(folder).sort();
const content = (name, from = folder) => readFileSync(path.join(from, name));

test('the types are right', () => {
  execFileSync(process.execPath, [path.join(web, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', web], { stdio: 'inherit' });
});

test('two builds are equal, byte for byte', () => {
  const other = build();
  assert.deepEqual(readdirSync(other).sort(), names);
  for (const name of names) assert.ok(content(name).equals(content(name, other)), name);
});

test('a first visit stays in its budget', () => {
  const loaded = names.filter((name) => name !== 'licenses.txt');
  assert.deepEqual(loaded, ['app.css', 'app.js', 'icon.svg', 'index.html']);
  const bytes = loaded.reduce((sum, name) => sum + gzipSync(content(name), { level: 9 }).length, 0);
  assert.ok(bytes <= pageBytesMax, `${bytes} of ${pageBytesMax} bytes`);
});

test('nothing inline, nothing from another host', () => {
  for (const page of [content('index.html').toString(), readFileSync(path.join(web, 'plain/index.html'), 'utf8')]) {
    assert.doesNotMatch(page, /<style|\sstyle=|\son\w+=|https?:|<script(?![^>]*\ssrc="\/)/i);
  }
  assert.doesNotMatch(content('app.css').toString(), /url\(|@import|https?:/);
  // Addresses in the script are namespaces and a package's advice in an error's text, none that is fetched.
  const hosts = new Set([...content('app.js').toString().matchAll(/https?:\/\/([\w.-]+\.[a-z]{2,})/g)].map((match) => match[1]));
  assert.deepEqual([...hosts].filter((host) => !['www.w3.org', 'github.com'].includes(host)), []);
});

test('the licence of every bundled package is there', () => {
  const text = content('licenses.txt').toString();
  for (const name of Object.keys(JSON.parse(readFileSync(path.join(web, 'package.json'), 'utf8')).dependencies)) {
    assert.match(text, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+ \\(`, 'm'));
  }
});

test('the lock file names versions and hashes, no place', () => {
  const lock = JSON.parse(readFileSync(path.join(web, 'package-lock.json'), 'utf8'));
  for (const [name, entry] of Object.entries(lock.packages)) {
    if (name === '') continue;
    assert.equal(entry.resolved, undefined, name);
    assert.match(entry.integrity, /^sha512-/, name);
  }
  const { dependencies, devDependencies } = lock.packages[''];
  for (const version of Object.values({ ...dependencies, ...devDependencies })) assert.match(version, /^\d+\.\d+\.\d+$/);
});

test('embedding: same input, same bytes; both encodings hold the file', () => {
  const embed = (name) => {
    const output = path.join(temporaryFolder(), name);
    execFileSync('python3', [path.join(web, 'embed.py'), output, path.join(web, 'csp.txt'), ...names.map((file) => path.join(folder, file))]);
    return readFileSync(output, 'latin1');
  };
  const source = embed('a.cpp');
  assert.equal(embed('b.cpp'), source);

  const arrays = new Map();
  for (const [, index, body] of source.matchAll(/constexpr char bytes_(\d+)\[\] =\n((?: {4}"[^\n]*"\n?)+);/g)) {
    const text = [...body.matchAll(/^ {4}"(.*)"$/gm)].map((match) => match[1]).join('');
    arrays.set(index, Buffer.from(text.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8))), 'latin1'));
  }
  const rows = [...source.matchAll(/\{"([^"]+)", "([^"]+)", "(\\"[^,]+\\")", "(\w*)", \{bytes_(\d+), (\d+)\}\}/g)];
  assert.equal(rows.length, 2 * names.length);
  assert.equal(new Set(rows.map((row) => row[3])).size, rows.length, 'every representation has its own tag');
  for (const [, url, , , encoding, index, bytes] of rows) {
    const stored = arrays.get(index);
    assert.equal(stored.length, Number(bytes), url);
    const original = encoding === 'gzip' ? gunzipSync(stored) : stored;
    assert.ok(original.equals(content(url === '/' ? 'index.html' : url.slice(1))), `${url} ${encoding}`);
  }
});

test('the policy is the strict one', () => {
  const policy = readFileSync(path.join(root, 'web/csp.txt'), 'ascii');
  for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'",
    "frame-ancestors 'none'", "require-trusted-types-for 'script'", 'trusted-types dompurify']) {
    assert.ok(policy.split(';').map((part) => part.trim()).includes(rule), rule);
  }
  assert.doesNotMatch(policy, /unsafe|\*|https?:|'allow-duplicates'/);
});
