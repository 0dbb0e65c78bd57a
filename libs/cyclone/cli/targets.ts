import { createInterface } from 'node:readline';
import { UsageError } from './command-line.js';

/** A run, or a node of it, that an action is about. */
export interface Target {
  readonly runId: string;
  readonly node?: string;
}

/**
 * The runs that the command line names. A single `-` reads them from stdin, one a line, as `--format ids` prints them; what follows an id
 * on its line is the name of a node.
 */
export async function readTargets(
  ids: readonly string[],
  input: NodeJS.ReadableStream = process.stdin,
): Promise<Target[]> {
  if (!ids.includes('-')) return unique(ids.map((runId) => ({ runId })));
  if (ids.length > 1) throw new UsageError('Pass ids, or - to read them from stdin, not both.');
  const targets: Target[] = [];
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    const [, runId, node] = /^\s*(\S+)(?:\s(.+))?$/.exec(line) ?? [];
    if (runId !== undefined) targets.push(node === undefined ? { runId } : { runId, node });
  }
  return unique(targets);
}

function unique(targets: readonly Target[]): Target[] {
  return [...new Map(targets.map((target) => [JSON.stringify(target), target])).values()];
}
