// Plays 2,000 random sequences and 1,000 storms against the reference model: `npm run model`. Arguments go to Jest.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const jest = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));
const flags = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
const { status } = spawnSync(process.execPath, [...flags, jest, 'test/model', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, CYCLONE_MODEL: 'long' },
});
process.exitCode = status ?? 1;
