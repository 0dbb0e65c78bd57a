import fc from 'fast-check';
import { Decimal } from '../../apps/sample/src/money/decimal.js';

describe('Decimal', () => {
  it.each([
    ['0', '0'],
    ['14', '14'],
    ['9.80', '9.8'],
    ['-0.50', '-0.5'],
    ['-0', '0'],
    ['007.0100', '7.01'],
    ['123456789012345678901234567890.000000001', '123456789012345678901234567890.000000001'],
  ])('reads %s and writes %s', (text, written) => {
    expect(Decimal.parse(text).toString()).toBe(written);
  });

  it.each(['', ' 1', '1,5', '1e3', '.5', '5.', '--1', 'NaN', '0x10', '1_000'])('refuses %j', (text) => {
    expect(() => Decimal.parse(text)).toThrow('is not a decimal number');
  });

  it('adds what floats cannot', () => {
    expect(Decimal.parse('0.1').plus(Decimal.parse('0.2')).toString()).toBe('0.3');
    expect(Decimal.parse('9007199254740993').plus(Decimal.parse('0.01')).toString()).toBe('9007199254740993.01');
    expect(Decimal.sum(Array.from({ length: 1000 }, () => Decimal.parse('0.001'))).toString()).toBe('1');
  });

  it('multiplies without rounding', () => {
    const net = Decimal.parse('18.6')
      .times(Decimal.parse('9'))
      .times(Decimal.ONE.minus(Decimal.parse('0.15')));
    expect(net.toString()).toBe('142.29');
    expect(Decimal.parse('-0.0001').times(Decimal.parse('0.0001')).toString()).toBe('-0.00000001');
  });

  it('agrees with whole numbers of units, for any numbers', () => {
    const units = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n });
    const decimal = (value: bigint) => Decimal.parse(`${value}`).times(Decimal.parse('0.0001'));
    fc.assert(
      fc.property(units, units, (a, b) => {
        expect(decimal(a).plus(decimal(b)).toString()).toBe(decimal(a + b).toString());
        expect(decimal(a).minus(decimal(b)).toString()).toBe(decimal(a - b).toString());
        expect(Decimal.parse(decimal(a).toString()).toString()).toBe(decimal(a).toString());
        expect(decimal(a).isGreaterThan(decimal(b))).toBe(a > b);
      }),
    );
  });
});
