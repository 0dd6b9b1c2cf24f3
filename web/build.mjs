// Builds the page: `node build.mjs OUTPUT_FOLDER`. The same sources give the same bytes; nothing is written elsewhere.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const output = process.argv[2];
if (output === undefined) {
  console.error('usage: node build.mjs OUTPUT_FOLDER');
  process.exit(2);
}
mkdirSync(output, { recursive: true });

const common = {
  absWorkingDir: here, // names in the output don't depend on where the build folder lies
  bundle: true,
  minify: true,
  charset: 'utf8',
  legalComments: 'none', // licenses.txt has them whole
  logLevel: 'warning',
  metafile: true,
};
const script = await build({
  ...common,
  entryPoints: ['src/main.tsx'],
  outfile: path.resolve(output, 'app.js'),
  format: 'iife',
  target: ['chrome125', 'firefox128', 'safari17.5'], // the first with light-dark() in CSS
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { 'process.env.NODE_ENV': '"production"' },
});
await build({
  ...common,
  entryPoints: ['src/style/app.css'],
  outfile: path.resolve(output, 'app.css'),
  target: ['chrome125', 'firefox128', 'safari17.5'],
});
for (const file of ['index.html', 'icon.svg']) copyFileSync(path.join(here, 'src', file), path.join(output, file));

// The licences of every package that is in the bundle.
const packages = new Set(
  Object.keys(script.metafile.inputs).flatMap((name) => name.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1] ?? []),
);
const sections = [...packages].sort().map((name) => {
  const folder = path.join(here, 'node_modules', name);
  const { version, license } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file)).sort();
  if (files.length === 0) throw new Error(`${name} has no licence file`);
  return [`${name} ${version} (${license})`, ...files.map((file) => readFileSync(path.join(folder, file), 'utf8').trim())].join('\n\n');
});
writeFileSync(path.join(output, 'licenses.txt'), `The page of hearth contains these packages.\n\n${sections.join('\n\n----\n\n')}\n`);
