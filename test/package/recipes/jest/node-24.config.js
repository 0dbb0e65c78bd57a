// With Node 24.9 or later and NODE_OPTIONS=--experimental-vm-modules Jest requires ESM packages by itself.
/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  testRegex: 'src/.*\\.spec\\.ts$',
  transform: { '^.+\\.ts$': 'ts-jest' },
};
