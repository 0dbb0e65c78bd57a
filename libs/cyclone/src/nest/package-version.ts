import { readFileSync } from 'node:fs';

/** The version of this package, for operators to see. Who bundles an application may have left the file behind. */
export function packageVersion(): string {
  try {
    const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch {
    return 'unknown'; // nothing depends on it
  }
}
