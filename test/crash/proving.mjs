// Plays the whole programme of crash tests, and the hammer, against the last build: `npm run proving`. Arguments go to Jest: `-t 'flush'`.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const jest = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const { CYCLONE_FIGURES: figures } = process.env;
const report = figures ? ['--json', `--outputFile=${join(figures, 'proving.json')}`] : [];
const { status } = spawnSync(
  process.execPath,
  [...flags, jest, 'test/crash', 'test/concurrency/hammer', ...report, ...process.argv.slice(2)],
  {
    stdio: 'inherit',
    env: { ...process.env, CYCLONE_PROVING: '1' },
  },
);
process.exitCode = status ?? 1;
