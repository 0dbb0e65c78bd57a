// Plays the whole programme of crash tests, and the hammer, against the last build: `npm run proving`. Arguments go to Jest: `-t 'flush'`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const jest = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const { status } = spawnSync(
  process.execPath,
  [...flags, jest, 'test/crash', 'test/concurrency/hammer', ...process.argv.slice(2)],
  {
    stdio: 'inherit',
    env: { ...process.env, CYCLONE_PROVING: '1' },
  },
);
process.exitCode = status ?? 1;
