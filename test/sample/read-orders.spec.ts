import 'reflect-metadata';
import { generateOrders } from '../../apps/sample/src/demo/generate-orders.js';
import { readOrders } from '../../apps/sample/src/orders/read-orders.js';

const HEADER = 'order_id,product_id,unit_price,quantity,discount';
const read = (...lines: string[]) => readOrders([HEADER, ...lines].join('\n'));
const productsOf = (orders: { id: string; lines: { productId: string }[] }[]) =>
  Object.fromEntries(orders.map(({ id, lines }) => [id, lines.map(({ productId }) => productId)]));

describe('reading orders from CSV', () => {
  it('puts the lines of an order together, wherever they are', async () => {
    const { orders, problems } = await read('1,11,14,12,0', '2,42,9.8,10,0.15', '1,72,34.8,5,0');
    expect(problems).toEqual([]);
    expect(orders).toMatchObject([
      {
        id: '1',
        lines: [
          { productId: '11', unitPrice: '14', quantity: 12, discount: '0' },
          { productId: '72', unitPrice: '34.8', quantity: 5, discount: '0' },
        ],
      },
      { id: '2', lines: [{ productId: '42', unitPrice: '9.8', quantity: 10, discount: '0.15' }] },
    ]);
  });

  it('understands a byte order mark, CRLF, spaces, empty lines and the last line without an end', async () => {
    const text = `\uFEFF${HEADER}\r\n\r\n 1 , 11 ,14, 12,0\r\n   \r\n2,42,9.8,10,0`;
    expect(await readOrders(text)).toMatchObject({ orders: [{ id: '1' }, { id: '2' }], problems: [] });
  });

  it('understands quoted fields with commas, quotes and line ends in them', async () => {
    const { orders, problems } = await readOrders(
      [
        `note,${HEADER}`,
        '"a, b",1,"11",14,12,0',
        '"he said ""yes""",2,12,14,12,0',
        '"two',
        'lines",3,13,14,12,0',
        ',4,14,14,x,0',
      ].join('\n'),
    );
    expect(productsOf(orders)).toEqual({ 1: ['11'], 2: ['12'], 3: ['13'] });
    expect(problems).toEqual([{ line: 6, reason: expect.stringContaining('quantity') }]);
  });

  it('finds columns by their names, in any order, and ignores others', async () => {
    const text = 'Discount,customer,Quantity,UNIT_PRICE,product_id,order_id,x\n0.05,Ann,2,9.80,11,7,ignored\n';
    const line = { productId: '11', unitPrice: '9.80', quantity: 2, discount: '0.05' };
    expect(await readOrders(text)).toMatchObject({ orders: [{ id: '7', lines: [line] }], problems: [] });
  });

  it.each([
    ['no product', '1,,14,12,0', 'productId'],
    ['a price that is no number', '1,11,cheap,12,0', 'unitPrice'],
    ['a negative price', '1,11,-14,12,0', 'unitPrice'],
    ['a price with an exponent', '1,11,1e3,12,0', 'unitPrice'],
    ['a price with too many decimals', '1,11,1.00001,12,0', 'unitPrice'],
    ['a broken quantity', '1,11,14,1.5,0', 'quantity'],
    ['a quantity of nothing', '1,11,14,0,0', 'quantity'],
    ['a discount of more than everything', '1,11,14,12,1.01', 'discount'],
    ['too few fields', '1,11,14,12', 'it has 4 fields, and the first line names 5 columns'],
    ['too many fields', '1,11,14,12,0,0', 'it has 6 fields, and the first line names 5 columns'],
    ['a price with a decimal comma', '1,11,9,80,1,', 'it has 6 fields'],
    ['a decimal comma and the last field left out', '1,11,12,50,1', 'discount is "1", so nothing would be charged'],
    ['a decimal comma, more pieces and the last field left out', '1,11,12,50,2', 'discount is "2": discount must be'],
    ['ten as quantity', '1,11,14,ten,0', 'quantity is "ten": quantity must be a whole number from 1 to 1000000'],
    ['5.0 as quantity', '1,11,14,5.0,0', 'quantity is "5.0": quantity must be a whole number'],
    ['no quantity', '1,11,14,,0', 'quantity is empty: quantity must be a whole number'],
    [
      'a quantity without end',
      '1,11,14,99999999999999999999,0',
      'quantity is "99999999999999999999": quantity must be',
    ],
    ['a stray quote', '1,11,"14"x,12,0', 'Quote'],
    ['a quote that is never closed', '1,"11,14,12,0', 'a quote is not closed'],
  ])('F8: reports a line with %s by its number, and leaves its order out as a whole', async (_, line, reason) => {
    const { orders, incomplete, problems } = await read('1,10,14,12,0', line, '1,12,14,12,0', '"2",13,"14",12,0');
    expect(problems).toEqual([{ line: 3, reason: expect.stringContaining(reason) }]);
    expect(problems[0]?.reason).not.toContain('any order');
    expect(productsOf(orders)).toEqual({ 2: ['13'] });
    expect(incomplete).toBe(1);
  });

  it.each([
    ['without an order', ',11,14,12,0', 'order_id is empty'],
    ['with an order that is none', 'a b,11,14,12,0', 'order_id is "a b"'],
    ['with a quote before its order', '"1,11,14,12,0', 'a quote is not closed'],
  ])('F8: places nothing of a file that has a line %s, which may belong to any', async (_, line, reason) => {
    const { orders, incomplete, problems } = await read('1,10,14,12,0', line, '2,13,14,12,0');
    expect(problems).toEqual([{ line: 3, reason: expect.stringContaining(reason) }]);
    expect(problems[0]?.reason).toContain('it may belong to any order, so none is placed');
    expect(orders).toEqual([]);
    expect(incomplete).toBe(2);
  });

  it('F8: does not take the order of a line from a field that may be shifted', async () => {
    const header = 'unit_price,order_id,product_id,quantity,discount';
    const { orders } = await readOrders([header, '14,1,11,12,0', '12,50,1,11,12,0', '14,2,11,12,0'].join('\n'));
    expect(orders).toEqual([]); // 50 is no order, and order 1 would be without a line
  });

  it('passes over lines of nothing but separators', async () => {
    expect(await read('1,11,14,12,0', ',,,,', '" ",,,,')).toMatchObject({ orders: [{ id: '1' }], problems: [] });
  });

  it.each([
    ['semicolons', ';'],
    ['tabs', '\t'],
  ])('F8: understands %s', async (_, separator) => {
    const lines = [HEADER, '1,11,"14.50",12,0.05', '1,12,9,10,', '2,11,"9,80",1,0'];
    const text = lines.map((line) => line.replaceAll(/,(?!80)/g, separator)).join('\r\n');
    expect(await readOrders(text)).toEqual({
      orders: [
        expect.objectContaining({
          id: '1',
          lines: [expect.objectContaining({ unitPrice: '14.50' }), expect.anything()],
        }),
      ],
      incomplete: 1,
      problems: [
        { line: 4, reason: expect.stringContaining('unit_price is "9,80": unitPrice must be a decimal number') },
      ],
    });
  });

  it.each(['sep=;', '"sep=;"', 'SEP=;'])('F8: understands a first line %s', async (first) => {
    const text = `\uFEFF${first}\r\n${HEADER.replaceAll(',', ';')}\r\n1;11;14;12;0\r\n1;11;14;ten;0\r\n`;
    expect(await readOrders(text)).toMatchObject({ orders: [], incomplete: 1, problems: [{ line: 4 }] });
  });

  it.each([
    ['sep=|', `sep=|\n${HEADER.replaceAll(',', '|')}\n`, 'sep=| names no separator that is known'],
    ['a separator other than sep= says', `sep=;\n${HEADER}\n1,11,14,12,0`, 'separated by commas, semicolons or tabs'],
    ['a column twice', `${HEADER},Quantity\n1,11,14,12,0,3`, 'names the column quantity twice'],
    ['a column that nobody needs twice', `${HEADER},note,note\n1,11,14,12,0,,`, 'names the column note twice'],
    ['a quote in the first line', `order_id,"x\n1,2\n`, 'The first line cannot be read: a quote is not closed'],
  ])('F8: refuses a file with %s', async (_, text, message) => {
    await expect(readOrders(text)).rejects.toThrow(message);
  });

  it('takes its time neither for quotes that are never closed nor for the event loop', async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => (i % 60 === 0 ? `1,"11,14,12,0` : `${i},11,14,12,0`));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const { orders, problems } = await read(...lines);
    clearInterval(timer);
    expect(problems).toHaveLength(334);
    expect(orders).toHaveLength(20_000 - 334 - 1); // the bad lines are of order 1
    expect(turns).toBeGreaterThan(10);
  });

  it('takes an empty discount for none', async () => {
    expect((await read('1,11,14,12,')).orders).toMatchObject([{ lines: [{ discount: '0' }] }]);
  });

  it('refuses a file without the columns it needs', async () => {
    await expect(readOrders('order_id,product_id\n1,2\n')).rejects.toThrow(
      'unit_price, quantity, discount is not there',
    );
    await expect(readOrders('')).rejects.toThrow('The first line must name the columns');
  });
});

describe('generated orders', () => {
  const generate = (count: number, seed: number) => [...generateOrders(count, seed)].join('');

  it('are the same for the same seed, and others for another', () => {
    expect(generate(50, 7)).toBe(generate(50, 7));
    expect(generate(50, 7)).not.toBe(generate(50, 8));
  });

  it('are as many as wanted, and each line is valid', async () => {
    const { orders, problems } = await readOrders(generate(200, 1));
    expect(problems).toEqual([]);
    expect(orders).toHaveLength(200);
  });
});
