import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError } from 'class-validator';
import { MAX_LINES, OrderLineDto, PlaceOrderDto } from '../orders/place-order.dto.js';
import { csvRecords, type CsvProblem } from './csv-records.js';

const COLUMNS = ['order_id', 'product_id', 'unit_price', 'quantity', 'discount'] as const;
type Row = Record<(typeof COLUMNS)[number], string>;

export interface OrdersFile {
  orders: PlaceOrderDto[];
  /** Lines that were left out, and why. */
  problems: CsvProblem[];
}

/**
 * Puts orders together from CSV text with one order line in each line, in any order. A line that cannot be used is reported
 * and left out; other columns are ignored.
 * @throws Error if a column is missing
 */
export function readOrders(text: string): OrdersFile {
  const orders = new Map<string, PlaceOrderDto>();
  const problems: CsvProblem[] = [];
  let columns: string[] | undefined;

  for (const record of csvRecords(text)) {
    if ('reason' in record) {
      problems.push(record);
    } else if (!columns) {
      columns = readHeader(record.fields);
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
    throw new Error(`The first line must name the columns ${COLUMNS.join(', ')}; ${missing.join(', ')} is not there.`);
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
