import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RECIPES } from '../compat/recipes.mjs';
import { ROOT } from '../structure/source-files.js';

const FOLDER = 'test/package/recipes/';

describe('the recipes of docs/bundling.md and docs/testing.md (F4, F36)', () => {
  const texts = ['docs/bundling.md', 'docs/testing.md'].map((page) => readFileSync(join(ROOT, page), 'utf8'));
  const shown = texts.flatMap((text) => [...text.matchAll(/<!-- (\S+) -->\n\n```js\n([^]*?)```/g)]);

  it('are the files that npm run test:compat tries', () => {
    expect(shown.length).toBeGreaterThan(3);
    const tried = new Set(RECIPES.flatMap(({ files }) => Object.values(files).map((file) => `test/package/${file}`)));
    for (const [, file = '', text] of shown) {
      expect(file.startsWith(FOLDER)).toBe(true);
      expect(tried).toContain(file);
      expect(text).toBe(readFileSync(join(ROOT, file), 'utf8'));
    }
  });

  it('name files that are there', () => {
    const missing = RECIPES.flatMap(({ files }) => Object.values(files)).filter(
      (file) => !existsSync(join(ROOT, 'test/package', file)),
    );
    expect(missing).toEqual([]);
  });
});
