import type { DataSource } from 'typeorm';
import type { PlaceOrderDto } from '../orders/place-order.dto.js';

/** What the database says after the demo. Counts of rows, and totals as exact decimals. */
export interface Tally {
  orders: number;
  runsCompleted: number;
  ledgerRows: number;
  ledgerTotal: string;
  expectedTotal: string;
  kills: number;
  reclaims: number;
  lost: number;
  duplicated: number;
  failed: number;
  unfinished: number;
}

/**
 * An order is unfinished while its run has not ended, or when it was never accepted, and failed when its run is. It is lost if it was accepted and has
 * no run, or its run is completed without a ledger row or all of its stock rows. A row is duplicated if it is one more than an order has charges or lines.
 * No unique key keeps such rows out of these tables.
 */
const OUTCOME = `
  WITH expected AS (
    SELECT order_id, count(*) AS lines, bool_or(is_accepted) AS is_accepted
    FROM unnest($1::text[], $2::boolean[]) AS line (order_id, is_accepted)
    GROUP BY order_id
  ), outcome AS (
    SELECT
      (SELECT count(*) FROM orders JOIN cyclone_v_runs AS runs ON runs.id = orders.run_id
       WHERE orders.id = order_id AND runs.state = 'completed') AS completed,
      (SELECT max(runs.state) FROM orders JOIN cyclone_v_runs AS runs ON runs.id = orders.run_id WHERE orders.id = order_id) AS state,
      (SELECT count(*) FROM ledger WHERE ledger.order_id = expected.order_id) AS charges,
      lines, is_accepted,
      (SELECT count(*) FROM stock_movements AS stock WHERE stock.order_id = expected.order_id) AS stock_rows,
      (SELECT count(DISTINCT line) FROM stock_movements AS stock WHERE stock.order_id = expected.order_id) AS stock_lines
    FROM expected
  )
  SELECT
    count(*)::int AS orders,
    coalesce(sum(completed), 0)::int AS "runsCompleted",
    (count(*) FILTER (WHERE CASE WHEN state IS NULL THEN is_accepted ELSE state = 'completed' AND (charges = 0 OR stock_lines < lines) END))::int AS lost,
    coalesce(sum(greatest(completed - 1, 0) + greatest(charges - 1, 0) + (stock_rows - stock_lines)), 0)::int AS duplicated,
    (count(*) FILTER (WHERE state IN ('failed', 'cancelled')))::int AS failed,
    (count(*) FILTER (WHERE CASE WHEN state IS NULL THEN NOT is_accepted ELSE state NOT IN ('completed', 'failed', 'cancelled') END))::int AS unfinished
  FROM outcome`;

/** PostgreSQL's numeric does the sum here; the workers calculate with their own decimals. */
const EXPECTED_TOTAL = `
  SELECT trim_scale(coalesce(sum(price * quantity * (1 - discount)), 0))::text AS total
  FROM unnest($1::numeric[], $2::numeric[], $3::numeric[]) AS line (price, quantity, discount)`;

/** @param accepted the ids of the orders that were accepted */
export async function takeTally(
  db: DataSource,
  orders: PlaceOrderDto[],
  accepted: ReadonlySet<string>,
  kills: number,
): Promise<Tally> {
  const lines = orders.flatMap((order) => order.lines.map((line) => ({ id: order.id, ...line })));
  const [outcome] = await db.query(OUTCOME, [lines.map(({ id }) => id), lines.map(({ id }) => accepted.has(id))]);
  const [expected] = await db.query(EXPECTED_TOTAL, [
    lines.map(({ unitPrice }) => unitPrice),
    lines.map(({ quantity }) => quantity),
    lines.map(({ discount }) => discount ?? '0'),
  ]);
  const [ledger] = await db.query(
    `SELECT count(*)::int AS rows, trim_scale(coalesce(sum(amount), 0))::text AS total FROM ledger`,
  );
  return {
    orders: outcome.orders,
    runsCompleted: outcome.runsCompleted,
    ledgerRows: ledger.rows,
    ledgerTotal: ledger.total,
    expectedTotal: expected.total,
    kills,
    reclaims: await countReclaims(db),
    lost: outcome.lost,
    duplicated: outcome.duplicated,
    failed: outcome.failed,
    unfinished: outcome.unfinished,
  };
}

/** How often a step was taken from a worker that had died. */
export async function countReclaims(db: DataSource): Promise<number> {
  const [row] = await db.query(`SELECT count(*)::int AS reclaims FROM cyclone_attempts WHERE outcome = 'reclaimed'`);
  return row.reclaims;
}

/** 0 when every order was charged once, 3 when there is nothing wrong but that some are unfinished, else 1. */
export function exitCodeOf(tally: Tally): number {
  if (tally.lost > 0 || tally.duplicated > 0 || tally.failed > 0) return 1;
  if (tally.unfinished > 0) return 3;
  const isExact = tally.ledgerRows === tally.orders && tally.ledgerTotal === tally.expectedTotal;
  return isExact && tally.runsCompleted === tally.orders ? 0 : 1;
}

export function printTally(tally: Tally): void {
  const rows = Object.entries(tally).map(([name, value]) => {
    const label = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
    return [label, String(value)] as const;
  });
  const width = Math.max(...rows.map(([, value]) => value.length));
  console.log();
  for (const [label, value] of rows) console.log(`${label.padEnd(16)}${value.padStart(width)}`);
  console.log();
  console.log(JSON.stringify(tally));
}
