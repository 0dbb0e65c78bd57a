const FORMAT = /^(-?)(\d+)(?:\.(\d+))?$/;

/** An exact decimal number for money. Floating point cannot hold 0.1; a whole number of small units can. */
export class Decimal {
  /** The value is `units` × 10^-`scale`. */
  private constructor(
    private readonly units: bigint,
    private readonly scale: number,
  ) {}

  static readonly ZERO = new Decimal(0n, 0);
  static readonly ONE = new Decimal(1n, 0);

  /** Reads `12`, `9.80` or `-0.5`. */
  static parse(text: string): Decimal {
    const [, sign, whole, fraction = ''] = FORMAT.exec(text) ?? [];
    if (whole === undefined) throw new Error(`"${text}" is not a decimal number`);
    return new Decimal(BigInt(`${sign}${whole}${fraction}`), fraction.length);
  }

  static sum(values: Iterable<Decimal>): Decimal {
    let total = Decimal.ZERO;
    for (const value of values) total = total.plus(value);
    return total;
  }

  plus(other: Decimal): Decimal {
    const scale = Math.max(this.scale, other.scale);
    return new Decimal(this.unitsAt(scale) + other.unitsAt(scale), scale);
  }

  minus(other: Decimal): Decimal {
    return this.plus(new Decimal(-other.units, other.scale));
  }

  times(other: Decimal): Decimal {
    return new Decimal(this.units * other.units, this.scale + other.scale);
  }

  isGreaterThan(other: Decimal): boolean {
    return this.minus(other).units > 0n;
  }

  /** The shortest way to write it: no zeros at the end of the fraction. PostgreSQL takes it as a numeric. */
  toString(): string {
    const digits = (this.units < 0n ? -this.units : this.units).toString().padStart(this.scale + 1, '0');
    const point = digits.length - this.scale;
    const fraction = digits.slice(point).replace(/0+$/, '');
    const sign = this.units < 0n ? '-' : '';
    return sign + digits.slice(0, point) + (fraction && `.${fraction}`);
  }

  private unitsAt(scale: number): bigint {
    return this.units * 10n ** BigInt(scale - this.scale);
  }
}
