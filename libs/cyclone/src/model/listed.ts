/** A list of names for a sentence, cut after ten. */
export function listed(names: readonly unknown[]): string {
  const shown = names.slice(0, 10).join(', ');
  return names.length > 10 ? `${shown} and ${names.length - 10} more` : shown;
}
