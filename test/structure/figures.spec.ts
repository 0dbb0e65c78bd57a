import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { newestMigration } from '../../scripts/figures/newest-migration.mjs';
import { PROGRAMMES } from '../../scripts/figures/programmes.mjs';
import { DOCUMENTS, readFigures, withTables } from '../../scripts/figures/tables.mjs';
import { ROOT } from './source-files.js';

const figures = readFigures(ROOT);

describe('the figures of the documents (F44)', () => {
  it('exist for each programme that the documents quote, and for no other', () => {
    expect(Object.keys(figures).toSorted()).toEqual(PROGRAMMES.map(({ name }) => name).toSorted());
  });

  it.each(Object.keys(DOCUMENTS))('stand in %s as they were measured', async (document) => {
    const text = readFileSync(join(ROOT, document), 'utf8');
    expect(text).toBe(await withTables(document, text, figures));
  });

  it.each(Object.entries(figures))('of %s say when, where and of what they were measured', (_, measured) => {
    expect(measured).toEqual({
      date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      commit: expect.stringMatching(/^[0-9a-f]{12}$/),
      command: expect.stringMatching(/^npm run /),
      migration: newestMigration(ROOT), // older ones are measured again: npm run figures
      machine: expect.objectContaining({ cores: expect.any(Number), node: expect.any(String) }),
      figures: expect.any(Object),
    });
  });
});
