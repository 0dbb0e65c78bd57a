// Removes everything that the build wrote.
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const WRITTEN = [
  'libs/cyclone/dist',
  'libs/cyclone/src/model/package-version.ts',
  'libs/cyclone/src/store/migration-texts.ts',
  'apps/sample/dist',
  'node_modules/.cache',
  'coverage',
];
for (const path of WRITTEN) rmSync(join(root, path), { recursive: true, force: true });
