// Plays every outage of the database against the last build: `npm run faults`. Arguments go to Jest: `-t 'read-only'`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const jest = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const { status } = spawnSync(
  process.execPath,
  [...flags, jest, 'test/faults', '--maxWorkers=1', '--testTimeout=600000', ...process.argv.slice(2)],
  { stdio: 'inherit', env: { ...process.env, CYCLONE_FAULTS: '1' } },
);
process.exitCode = status ?? 1;
