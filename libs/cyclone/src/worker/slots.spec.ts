import { Slots } from './slots.js';

const claims = (slots: Slots, everywhere = false): Record<string, number> =>
  Object.fromEntries(slots.reserve(everywhere).claims.map(({ queue, slots: count }) => [queue, count]));

describe('the slots of queues', () => {
  it('are shared by the lanes, which together never reserve more than is free', () => {
    const slots = new Slots(new Map([['a', 5]]), 2);
    slots.heat('a');
    expect([claims(slots), claims(slots), claims(slots)]).toEqual([{ a: 3 }, { a: 2 }, {}]);
  });

  it('are offered where work may be due only, and everywhere by a call that completes steps', () => {
    const slots = new Slots(
      new Map([
        ['a', 2],
        ['b', 2],
      ]),
      1,
    );
    slots.heat('a');
    expect(claims(slots)).toEqual({ a: 2 });
    expect(claims(slots, true)).toEqual({ b: 2 });
  });

  it('grow cold when a call finds nothing, unless there was a new reason to look meanwhile', () => {
    const slots = new Slots(new Map([['a', 2]]), 1);
    slots.heat('a');
    slots.settle(slots.reserve(false), new Map());
    expect(slots.wanted).toBeUndefined();
    slots.heat('a');
    const reservation = slots.reserve(false);
    slots.heat('a');
    slots.settle(reservation, new Map());
    expect(slots.wanted).toBe('now');
  });

  it('stay warm when a call found nothing while another one was filled: it may have held all candidates', () => {
    for (const filledFirst of [true, false]) {
      const slots = new Slots(new Map([['a', 4]]), 2);
      slots.heat('a');
      const [first, second] = [slots.reserve(false), slots.reserve(false)];
      const settlements = [() => slots.settle(first, new Map([['a', 2]])), () => slots.settle(second, new Map())];
      for (const settle of filledFirst ? settlements : settlements.toReversed()) settle();
      expect(slots.wanted).toBe('now');
      slots.settle(slots.reserve(false), new Map());
      expect(slots.wanted).toBeUndefined();
    }
  });

  it('are not worth a call while few of many are free, until a moment has passed', () => {
    const slots = new Slots(new Map([['a', 10]]), 1);
    slots.heat('a');
    slots.settle(slots.reserve(false), new Map([['a', 10]]));
    expect(slots.wanted).toBeUndefined();
    slots.free('a');
    expect(slots.wanted).toBe('soon');
    slots.ripen();
    expect(slots.wanted).toBe('now');
  });

  it('are looked at when one comes free in a queue that a call could not look into', () => {
    const slots = new Slots(new Map([['a', 1]]), 1);
    slots.take('a');
    expect(claims(slots, true)).toEqual({});
    slots.free('a');
    expect(slots.wanted).toBe('now');
  });
});
