// What the tests of the page share.
import { createRequire } from 'node:module';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const web = path.join(root, 'web');
export const chromiumPath = process.env.HEARTH_CHROMIUM ?? '/usr/bin/chromium';

// The test runner's word for "not run".
export function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

// A package of web/node_modules; ends the test as skipped where they are not installed.
const fromWeb = createRequire(path.join(web, 'package.json'));
export function need(name) {
  if (!existsSync(path.join(web, 'node_modules', name))) skip(`web/node_modules/${name} is missing (npm ci --prefix web)`);
  return fromWeb(name);
}

export function resolveInWeb(name) {
  return fromWeb.resolve(name);
}

// A folder that is gone after the test.
export function temporaryFolder() {
  const folder = mkdtempSync(path.join(tmpdir(), 'hearth-page-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

// The exports of one of the page's modules (TypeScript, its imports bundled).
export async function importPageModule(name) {
  const folder = temporaryFolder();
  const outfile = path.join(folder, 'module.mjs');
  await need('esbuild').build({
    absWorkingDir: web, entryPoints: [`src/${name}.ts`], outfile, bundle: true, format: 'esm', platform: 'node', logLevel: 'error',
  });
  return import(pathToFileURL(outfile));
}

// A small generator of reproducible numbers (mulberry32), [0, 1).
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
