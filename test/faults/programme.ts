/** Whether everything is played, as `npm run faults` does, instead of the part that fits into every run of the tests. */
export const LONG_PROGRAMME = process.env.CYCLONE_FAULTS === '1';

/** Says what was measured, where somebody reads it. */
export function note(name: string, what: string): void {
  if (LONG_PROGRAMME) process.stdout.write(`    ${name}: ${what}\n`);
}
