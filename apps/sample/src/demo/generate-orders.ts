const DISCOUNTS = ['0', '0', '0', '0.05', '0.1', '0.15', '0.2', '0.25'];

/** Order lines as CSV text, like those that `--file` reads. The same seed gives the same lines. */
export function* generateOrders(count: number, seed: number): Generator<string> {
  const random = randomNumbers(seed);
  const below = (limit: number) => Math.floor(random() * limit);

  yield 'order_id,product_id,unit_price,quantity,discount\n';
  for (let order = 1; order <= count; order++) {
    for (let lines = 1 + below(5); lines > 0; lines--) {
      const price = `${1 + below(99)}.${String(below(100)).padStart(2, '0')}`;
      yield `${10_000 + order},${1 + below(77)},${price},${1 + below(50)},${DISCOUNTS[below(DISCOUNTS.length)]}\n`;
    }
  }
}

/** From 0 up to 1: the generator mulberry32, because Math.random() takes no seed. */
function randomNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
