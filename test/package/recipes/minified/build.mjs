// node build.mjs <order>: the application minified, with its classes in the order `one other` or `other one`, or without their names.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';
import ts from 'typescript';
import { NOT_INSTALLED } from './not-installed.mjs';

const source = await readFile('src/main.ts', 'utf8');
/** @param {string} name */
const part = (name) => new RegExp(`// <${name}>[^]*// </${name}>`).exec(source)?.[0] ?? '';
const variants = {
  first: source,
  second: source.replace(part('one'), '').replace(part('other'), () => `${part('other')}\n${part('one')}`),
  unnamed: source.replace(/@Workflow\(\{.*?\}\)/g, '@Workflow({} as never)'),
};
await mkdir('dist', { recursive: true });
for (const [name, text] of Object.entries(variants)) {
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  await writeFile(`dist/${name}.js`, ts.transpileModule(text, { compilerOptions }).outputText);
}
await build({
  entryPoints: Object.keys(variants).map((name) => `dist/${name}.js`),
  outdir: 'bundle',
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  external: NOT_INSTALLED,
  define: { 'import.meta.url': 'importMetaUrl' },
  banner: { js: `const importMetaUrl = require('node:url').pathToFileURL(__filename).href;` },
});
