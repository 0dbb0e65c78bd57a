#!/usr/bin/env node
// Committed, and not made by the build: npm links a command only when its file is there at the install, which in a clone comes first.
import { existsSync } from 'node:fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) {
  await import(main.href);
} else {
  process.stderr.write(
    'cyclone: The package has not been built. In a clone of the repository run npm run build first.\n',
  );
  process.exitCode = 1;
}
