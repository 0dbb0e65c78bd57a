// Writes docs/state-machine.md from the table of transitions in the built library; with --check it only says whether it is stale.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const page = join(root, 'docs/state-machine.md');

/**
 * @typedef {{ entity: string, from: readonly string[], to: string, trigger: string }} Transition
 * @typedef {{ entity: string, from: string, via: string, to: string }} Composite
 */

/**
 * The page as text.
 * @param {readonly Transition[]} transitions
 * @param {readonly Composite[]} composites
 */
export function renderStateMachine(transitions, composites) {
  /** @param {string} entity */
  const rowsOf = (entity) => transitions.filter((row) => row.entity === entity);
  const parts = composites.map(
    ({ entity, from, via, to }) =>
      `A ${entity} that goes from \`${from}\` to \`${to}\` in one statement has passed \`${via}\`.`,
  );
  return `# State machine

<!-- Generated from libs/cyclone/src/model/transitions.ts by scripts/generate-state-machine.mjs. Do not edit. -->

Every change of state that the engine makes. \`(new)\` is the insert of the row. Nothing else may happen: tests install a
trigger that raises on any change that is not in this table.

${parts.join('\n')}

## Steps

${diagram(rowsOf('step'))}

${table(rowsOf('step'))}

## Runs

${diagram(rowsOf('run'))}

${table(rowsOf('run'))}
`;
}

/** @param {readonly Transition[]} rows */
function diagram(rows) {
  const arrows = new Set(
    rows.flatMap((row) => row.from.map((from) => `  ${from === 'new' ? '[*]' : from} --> ${row.to}`)),
  );
  return ['```mermaid', 'stateDiagram-v2', ...arrows, '```'].join('\n');
}

/** @param {readonly Transition[]} rows */
function table(rows) {
  const cells = [
    ['From', 'To', 'Trigger'],
    ...rows.map((row) => [row.from.map((from) => (from === 'new' ? '(new)' : from)).join(', '), row.to, row.trigger]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`);
  lines.splice(1, 0, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`);
  return lines.join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { COMPOSITES, TRANSITIONS } = await import('../libs/cyclone/dist/model/transitions.js');
  const text = renderStateMachine(TRANSITIONS, COMPOSITES);
  if (!process.argv.includes('--check')) {
    writeFileSync(page, text);
  } else if (readFileSync(page, 'utf8') !== text) {
    console.error('docs/state-machine.md is stale. Run: npm run build && node scripts/generate-state-machine.mjs');
    process.exitCode = 1;
  }
}
