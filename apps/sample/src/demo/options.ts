import { parseArgs } from 'node:util';

export interface DemoOptions {
  /** A CSV file of order lines; without it, orders are generated. */
  file?: string;
  /** How many to generate. */
  orders: number;
  seed: number;
  /** How often a worker is killed, at most. */
  kills: number;
  /** After so many seconds in which nothing moves, the demo gives up. */
  patience: number;
}

export const USAGE = `npm run demo -- [--file orders.csv | --orders 200 --seed 1] [--kills 5] [--patience 300]

  --file      a CSV file with the columns order_id, product_id, unit_price, quantity and discount
  --orders    how many orders to generate when there is no file
  --seed      the same seed generates the same orders
  --kills     how often a worker is ended with kill -9
  --patience  after how many seconds in which no step moves it gives up

It ends with 0 when every order was charged once, 1 when one was lost, charged twice or failed, 2 when it could not run, 3 when it gave up and orders
are unfinished, 130 when it was interrupted.`;

/** @throws Error that names the option and what it may be; `null` when the user asked for help */
export function parseOptions(args: string[]): DemoOptions | null {
  const { values } = parseArgs({
    args,
    options: {
      file: { type: 'string' },
      orders: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      kills: { type: 'string', default: '5' },
      patience: { type: 'string', default: '300' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  return {
    file: values.file,
    orders: wholeNumber('--orders', values.orders, 1),
    seed: wholeNumber('--seed', values.seed, 0),
    kills: wholeNumber('--kills', values.kills, 0),
    patience: wholeNumber('--patience', values.patience, 1),
  };
}

function wholeNumber(name: string, text: string, least: number): number {
  if (!/^\d{1,7}$/.test(text) || Number(text) < least) {
    throw new Error(`${name} is "${text}": it must be a whole number from ${least} to 9999999.`);
  }
  return Number(text);
}
