// Compiles the library, the command and the sample application, then puts the migrations beside the compiled library.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');

const compiled = spawnSync(process.execPath, [tsc, '-b', root, ...process.argv.slice(2)], { stdio: 'inherit' });
if (compiled.status !== 0) process.exit(compiled.status ?? 1);

// The whole folder is laid anew, so that a migration renamed during development does not leave its old name behind.
const migrations = join(root, 'libs/cyclone/dist/migrations');
rmSync(migrations, { recursive: true, force: true });
cpSync(join(root, 'migrations'), migrations, {
  recursive: true,
  filter: (source) => !source.includes('.') || source.endsWith('.sql') || source === join(root, 'migrations'),
});

const command = join(root, 'libs/cyclone/dist/cli/main.js');
if (existsSync(command)) chmodSync(command, 0o755);
