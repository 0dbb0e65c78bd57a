/**
 * A text as SQL literal. The only way by which values get into SQL text: several statements in one message take no parameters.
 */
export function literal(value: string): string {
  const quoted = `'${value.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return value.includes('\\') ? ` E${quoted}` : quoted;
}
