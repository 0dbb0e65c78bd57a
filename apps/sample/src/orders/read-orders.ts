import { setImmediate as nextTurn } from 'node:timers/promises';
import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { csvRecords, linesOf, type CsvProblem } from './csv-records.js';
import { CsvFormatError, formatOf } from './csv-separator.js';
import { isOrderId, MAX_LINES, OrderLineDto, PlaceOrderDto } from './place-order.dto.js';

/** After so many records the event loop gets its turn, so that a long file keeps nobody waiting. */
const RECORDS_IN_A_TURN = 200;

const COLUMNS = ['order_id', 'product_id', 'unit_price', 'quantity', 'discount'] as const;
type Row = Record<(typeof COLUMNS)[number], string>;

/** Where a property of an order line stands in a file. */
const COLUMN_OF: Record<string, keyof Row> = {
  id: 'order_id',
  productId: 'product_id',
  unitPrice: 'unit_price',
  quantity: 'quantity',
  discount: 'discount',
};

export interface OrdersFile {
  /** Those of which every line can be used. */
  orders: PlaceOrderDto[];
  /** How many orders are left out because one of their lines cannot be used. */
  incomplete: number;
  /** The lines that cannot be used, and why. */
  problems: CsvProblem[];
}

/**
 * Puts orders together from CSV text with one order line in each line, in any order; other columns are ignored. An order is left out as
 * a whole when one of its lines cannot be used, so that a corrected file can still place it. A line of which nobody can tell the order
 * may belong to any, so then all are left out.
 * @throws CsvFormatError when the first line cannot be used
 */
export async function readOrders(text: string): Promise<OrdersFile> {
  const lines = linesOf(text);
  const format = formatOf(lines, COLUMNS);
  const orders = new Map<string, PlaceOrderDto>();
  const incomplete = new Set<string>();
  const problems: CsvProblem[] = [];
  let columns: string[] | undefined;
  let records = 0;
  let strays = 0;

  for (const { line, fields, ...rest } of csvRecords(lines, format)) {
    if (++records % RECORDS_IN_A_TURN === 0) await nextTurn();
    if (!columns) {
      if ('reason' in rest) throw new CsvFormatError(`The first line cannot be read: ${rest.reason}`);
      columns = readHeader(fields);
      continue;
    }
    const row = rowOf(columns, fields);
    const order = orders.get(row.order_id) ?? newOrder(row.order_id);
    const reasons = 'reason' in rest ? [rest.reason] : reasonsAgainst(order, row, fields.length, columns.length);
    if (reasons.length === 0) {
      order.lines.push(orderLineOf(row));
      orders.set(order.id, order);
    } else {
      // Where fields are too many or too few, only the first one is certainly what its column says.
      const isInPlace = columns[0] === 'order_id' || (fields.length === columns.length && !('reason' in rest));
      const isKnown = isInPlace && isOrderId(row.order_id);
      if (isKnown) incomplete.add(row.order_id);
      else strays++;
      const reason = reasons.join('; ');
      problems.push({ line, reason: isKnown ? reason : `${reason}; it may belong to any order, so none is placed` });
    }
  }
  if (!columns) readHeader([]);
  const all = new Set([...orders.keys(), ...incomplete]);
  const complete = strays > 0 ? [] : [...orders.values()].filter(({ id }) => !incomplete.has(id));
  return { orders: complete, incomplete: all.size - complete.length, problems };
}

function readHeader(fields: string[]): string[] {
  const columns = fields.map((name) => name.toLowerCase());
  const missing = COLUMNS.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    throw new CsvFormatError(
      `The first line must name the columns ${COLUMNS.join(', ')}, separated by commas, semicolons or tabs; ${missing.join(', ')} is not there.`,
    );
  }
  const twice = columns.find((name, index) => name !== '' && columns.indexOf(name) < index);
  if (twice !== undefined) throw new CsvFormatError(`The first line names the column ${twice} twice.`);
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

/** The rules are those of `POST /orders`, and what a decimal comma does: it moves every field behind it into the wrong column. */
function reasonsAgainst(order: PlaceOrderDto, row: Row, fields: number, columns: number): string[] {
  if (fields !== columns) return [`it has ${fields} fields, and the first line names ${columns} columns`];
  if (order.lines.length === MAX_LINES) return [`order ${order.id} has more than ${MAX_LINES} lines`];
  const candidate = Object.assign(new PlaceOrderDto(), order, { lines: [orderLineOf(row)] });
  const reasons = validateSync(candidate, { stopAtFirstError: true }).flatMap((error) => reasonsOf(error, row));
  if (reasons.length === 0 && Number(row.discount) === 1) {
    return [
      `discount is "${row.discount}", so nothing would be charged; with a decimal comma before it, the fields are shifted`,
    ];
  }
  return reasons;
}

function reasonsOf({ property, constraints = {}, children = [] }: ValidationError, row: Row): string[] {
  const column = COLUMN_OF[property];
  const value = column && (row[column] === '' ? 'empty' : JSON.stringify(row[column]));
  const own = Object.values(constraints).map((text) => (column ? `${column} is ${value}: ${text}` : text));
  return [...own, ...children.flatMap((child) => reasonsOf(child, row))];
}
