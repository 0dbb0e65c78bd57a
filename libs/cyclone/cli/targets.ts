import { createInterface } from 'node:readline';
import { UsageError } from './command-line.js';
import { visible, visibleJson } from './output/visible.js';

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
    const [, runId, node] = /^(\S+)(?:\s+(.+))?$/.exec(line.trim()) ?? [];
    if (runId !== undefined) targets.push(node === undefined ? { runId } : { runId, node: readNode(node) });
  }
  return unique(targets);
}

/** A target on a line of its own. Node names that a line cannot hold as they are come as JSON. */
export function writeTarget(runId: string, node: string): string {
  const plain = node === node.trim() && !node.startsWith('"') && visible(node) === node;
  return `${runId} ${plain ? node : visibleJson(node)}`;
}

function readNode(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return String(JSON.parse(text));
  } catch {
    throw new UsageError(`A node name that begins with a quote must be JSON: ${text}`);
  }
}

function unique(targets: readonly Target[]): Target[] {
  return [...new Map(targets.map((target) => [JSON.stringify(target), target])).values()];
}
