import { setImmediate as nextTurn } from 'node:timers/promises';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { MAX_LINES, OrderLineDto, PlaceOrderDto } from './place-order.dto.js';
import { csvRecords, type CsvProblem } from './csv-records.js';

/** After so many records the event loop gets its turn, so that a long file keeps nobody waiting. */
const RECORDS_IN_A_TURN = 200;

const COLUMNS = ['order_id', 'product_id', 'unit_price', 'quantity', 'discount'] as const;
type Row = Record<(typeof COLUMNS)[number], string>;

/** The first line does not name every column that an order needs. */
export class MissingColumnsError extends Error {}

export interface OrdersFile {
  orders: PlaceOrderDto[];
  /** Lines that were left out, and why. */
  problems: CsvProblem[];
}

/**
 * Puts orders together from CSV text with one order line in each line, in any order. A line that cannot be used is reported
 * and left out; other columns are ignored.
 * @throws MissingColumnsError
 */
export async function readOrders(text: string): Promise<OrdersFile> {
  const orders = new Map<string, PlaceOrderDto>();
  const problems: CsvProblem[] = [];
  let columns: string[] | undefined;
  let records = 0;

  for (const record of csvRecords(text)) {
    if (++records % RECORDS_IN_A_TURN === 0) await nextTurn();
    if ('reason' in record) {
      problems.push(record);
    } else if (!columns) {
      columns = readHeader(record.fields);
    } else if (record.fields.length > columns.length) {
      // A price of 9,80, for one, would move every field behind it into the wrong column.
      problems.push({
        line: record.line,
        reason: `has ${record.fields.length} fields, and the first line ${columns.length}`,
      });
    } else {
      const row = rowOf(columns, record.fields);
      const order = orders.get(row.order_id) ?? newOrder(row.order_id);
      const line = orderLineOf(row);
      const reasons = reasonsAgainst(order, line);
      if (reasons.length > 0) {
        problems.push({ line: record.line, reason: reasons.join('; ') });
      } else {
        order.lines.push(line);
        orders.set(order.id, order);
      }
    }
  }
  if (!columns) readHeader([]);
  return { orders: [...orders.values()], problems };
}

function readHeader(fields: string[]): string[] {
  const columns = fields.map((name) => name.toLowerCase());
  const missing = COLUMNS.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    throw new MissingColumnsError(
      `The first line must name the columns ${COLUMNS.join(', ')}; ${missing.join(', ')} is not there.`,
    );
  }
  return columns;
}

function rowOf(columns: string[], fields: string[]): Row {
  return Object.fromEntries(COLUMNS.map((name) => [name, fields[columns.indexOf(name)] ?? ''])) as Row;
}

function newOrder(id: string): PlaceOrderDto {
  return plainToInstance(PlaceOrderDto, { id, email: 'customer@example.com', lines: [] });
}

function orderLineOf(row: Row): OrderLineDto {
  return plainToInstance(OrderLineDto, {
    productId: row.product_id,
    unitPrice: row.unit_price,
    quantity: /^\d+$/.test(row.quantity) ? Number(row.quantity) : row.quantity,
    discount: row.discount || '0',
  });
}

/** The rules are those of `POST /orders`. */
function reasonsAgainst(order: PlaceOrderDto, line: OrderLineDto): string[] {
  if (order.lines.length === MAX_LINES) return [`order ${order.id} has more than ${MAX_LINES} lines`];
  const candidate = Object.assign(new PlaceOrderDto(), order, { lines: [line] });
  return validateSync(candidate, { stopAtFirstError: true }).flatMap(constraintsOf);
}

function constraintsOf(error: ValidationError): string[] {
  return [...Object.values(error.constraints ?? {}), ...(error.children ?? []).flatMap(constraintsOf)];
}
