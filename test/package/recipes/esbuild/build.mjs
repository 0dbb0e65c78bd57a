// node build.mjs: bundles what `tsc` wrote, because esbuild itself writes no metadata for decorators.
import { build } from 'esbuild';
import { NOT_INSTALLED } from './not-installed.mjs';

await build({
  entryPoints: { main: 'dist/main.js', 'lease-thread': 'nestjs-cyclone/lease-thread' },
  outdir: 'bundle',
  bundle: true,
  platform: 'node',
  format: 'cjs',
  external: NOT_INSTALLED,
  // Nest 12 and TypeORM ask for import.meta.url, which CommonJS does not have.
  define: { 'import.meta.url': 'importMetaUrl' },
  banner: { js: `const importMetaUrl = require('node:url').pathToFileURL(__filename).href;` },
});
