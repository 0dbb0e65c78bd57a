// node scripts/run-built.mjs <entry> [arguments]: builds, then runs the entry in this same process, so that a signal to npm reaches it
// (`a && b` in an npm script leaves a shell between them that passes none on).
import { spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [, , entry, ...rest] = process.argv;
if (!entry) throw new Error('Usage: node scripts/run-built.mjs <entry> [arguments]');
const scripts = dirname(fileURLToPath(import.meta.url));
// The first build takes a while; on stderr, as what the entry writes may be read by a program.
console.error('Compiling …');
const { status } = spawnSync(process.execPath, [resolve(scripts, 'build.mjs')], { stdio: 'inherit' });
if (status !== 0) process.exit(status ?? 1);
const file = resolve(entry);
process.argv = [process.execPath, file, ...rest];
await import(pathToFileURL(file).href);
