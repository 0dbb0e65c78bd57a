// Removes everything that the build wrote.
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
for (const folder of ['libs/cyclone/dist', 'apps/sample/dist', 'node_modules/.cache', 'coverage'])
  rmSync(join(root, folder), { recursive: true, force: true });
