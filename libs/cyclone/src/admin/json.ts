/** A value as JSON has it: what JSON cannot hold becomes text or null, and nothing throws. */
export function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value, (_, item: unknown) => (typeof item === 'bigint' ? String(item) : item)) as
    string | undefined;
  return text === undefined ? null : (JSON.parse(text) as unknown);
}

/** The properties of a record under names_like_this; what stands below them stays as it is. */
export function snake(record: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [snakeCase(key), value]));
}

/** The same at every depth. Only for records without keys that somebody chose, such as tags or names of queues. */
export function deepSnake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(deepSnake);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [snakeCase(key), deepSnake(item)]));
}

/** A record's properties by a list of their names, null where it has none. */
export function pick(record: Readonly<Record<string, unknown>>, names: Iterable<string>): Record<string, unknown> {
  return Object.fromEntries([...names].map((name) => [name, record[name] ?? null]));
}

const snakeCase = (key: string): string => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
