// Writes docs/openapi.json from the table of routes in the built library; with --check it only says whether it is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import 'reflect-metadata';
import { format, resolveConfig } from 'prettier';
import { openApi } from '../libs/cyclone/dist/admin/open-api.js';
import { ROUTES } from '../libs/cyclone/dist/admin/routes/index.js';

const file = join(dirname(dirname(fileURLToPath(import.meta.url))), 'docs/openapi.json');
const text = await format(JSON.stringify(openApi(ROUTES, '/cyclone/api/v1')), {
  ...(await resolveConfig(file)),
  filepath: file,
});
if (!process.argv.includes('--check')) {
  writeFileSync(file, text);
} else if (readFileSync(file, 'utf8') !== text) {
  console.error('docs/openapi.json is stale. Run: npm run build && node scripts/generate-openapi.mjs');
  process.exitCode = 1;
}
