import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { COMPOSITES, TRANSITIONS } from './transitions.js';
import { renderStateMachine } from '../../../../scripts/generate-state-machine.mjs';

const page = fileURLToPath(new URL('../../../../docs/state-machine.md', import.meta.url));

describe('docs/state-machine.md', () => {
  it('says what the table of transitions says', () => {
    // Stale: npm run build && node scripts/generate-state-machine.mjs
    expect(readFileSync(page, 'utf8')).toBe(renderStateMachine(TRANSITIONS, COMPOSITES));
  });
});
