import { Injectable } from '@nestjs/common';
import type { CsvProblem } from './csv-records.js';
import { OrdersService } from './orders.service.js';
import { readOrders } from './read-orders.js';

/** So many orders are stored at a time: each takes a connection, and others want some as well. */
const AT_A_TIME = 4;
/** So many bad lines are listed; a file with more of them is no file of orders. */
const LISTED_PROBLEMS = 1000;

export interface ImportReport {
  /** Orders of which every line can be used. */
  orders: number;
  /** Those that this import made. */
  created: number;
  /** Those that were there already; nothing happened to them. */
  existing: number;
  /** Orders that were left out because one of their lines cannot be used. Correct it, and send the file again. */
  incomplete: number;
  /** How many lines cannot be used. */
  badLines: number;
  /** Which, and why: the first thousand. */
  problems: CsvProblem[];
}

@Injectable()
export class OrdersImport {
  constructor(private readonly orders: OrdersService) {}

  /**
   * Places the orders of a CSV text. One with a bad line is left out, and the rest goes on without it. Each order is stored by itself,
   * once: an import that broke off is finished by the same import, and what was left out by a corrected file.
   * @throws CsvFormatError: nothing was placed
   */
  async import(text: string): Promise<ImportReport> {
    const { orders, incomplete, problems } = await readOrders(text);
    let created = 0;
    for (let at = 0; at < orders.length; at += AT_A_TIME) {
      const placed = await Promise.all(orders.slice(at, at + AT_A_TIME).map((order) => this.orders.place(order)));
      created += placed.filter((run) => run.created).length;
    }
    return {
      orders: orders.length,
      created,
      existing: orders.length - created,
      incomplete,
      badLines: problems.length,
      problems: problems.slice(0, LISTED_PROBLEMS),
    };
  }
}
