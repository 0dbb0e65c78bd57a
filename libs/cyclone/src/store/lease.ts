import { createHash } from 'node:crypto';

/** A lease: a step as one execution holds it. */
export interface Lease {
  readonly runId: string;
  readonly node: string;
  readonly generation: number;
}

/**
 * The name that a session bears while its completion transaction is open, so that whoever takes the lease away can end it (C3).
 * It is made of digits and hex only, and fits into application_name whatever the node is called. Several Cyclones share one
 * server, and their runs have the same numbers, so the schema is part of it; `cyclone_end_orphans` computes the same.
 */
export function leaseMark(schema: string, { runId, node, generation }: Lease): string {
  const hash = createHash('sha256').update(`${schema}\0${node}`).digest('hex').slice(0, 16);
  return `cyclone:${runId}:${hash}:${generation}`;
}
