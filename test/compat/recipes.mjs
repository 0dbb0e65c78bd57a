// Ways to build, bundle and test an application, each in a fresh one: what docs/bundling.md and docs/testing.md say, tried. The files are
// those of test/package/recipes.

/**
 * @typedef {object} Command
 * @property {readonly string[]} run a file of a package that is installed, and its arguments; a path with `./` is the application's
 * @property {string} [refuses] what it must say when it must fail
 * @property {Record<string, string>} [env]
 * @property {unknown} [answers] what the last line must be, as JSON; `undefined`: anything
 * @property {string} [alone] a folder of the application: it runs in a copy of that, where no package can be found
 */

/**
 * @typedef {object} Recipe
 * @property {string} name
 * @property {string} [node] version of Node; default the one at hand
 * @property {'npm' | 'pnpm' | 'yarn'} [manager] default npm
 * @property {'commonjs' | 'module'} type of the application
 * @property {Record<string, string>} packages beside the library
 * @property {Record<string, string>} files in the application: of test/package
 * @property {readonly Command[]} commands
 */

const base = {
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  pg: '8.23.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
  typeorm: '1.1.1',
  typescript: '6.0.3',
  '@types/node': '20.19.0',
  '@types/pg': '8.23.1',
};
const nest12 = {
  ...base,
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/schedule': '12.0.2',
  '@nestjs/typeorm': '12.0.2',
};
const nest11 = {
  ...base,
  '@nestjs/common': '11.2.10',
  '@nestjs/core': '11.2.10',
  '@nestjs/schedule': '6.1.3',
  '@nestjs/typeorm': '11.0.3',
};
const esbuild = { esbuild: '0.28.2' };
const ncc = { '@vercel/ncc': '0.45.0' };
const jest = { jest: '30.5.2', '@types/jest': '30.0.0' };
const tsJest = { ...jest, 'ts-jest': '29.4.15' };

const APPLICATION = { 'src/main.ts': 'bundled-application/main.ts' };
const TSCONFIG = { 'tsconfig.json': 'recipes/module-resolution/tsconfig.json' };
const NOT_INSTALLED = { 'not-installed.mjs': 'recipes/esbuild/not-installed.mjs' };
const JEST = { 'src/orders.spec.ts': 'recipes/jest/orders.ts' };
/** @param {string[]} args */
const tsc = (...args) => ({ run: ['typescript/bin/tsc', ...args] });
const NODE_NEXT = tsc('--module', 'NodeNext');

/** @param {string} by */
const once = (by) => ({ calls: 1, generation: 1, by });
const THREAD = once('thread');

/** @type {Recipe[]} */
export const RECIPES = [
  {
    name: 'esbuild',
    type: 'commonjs',
    packages: { ...nest12, ...esbuild },
    files: { ...APPLICATION, ...TSCONFIG, ...NOT_INSTALLED, 'build.mjs': 'recipes/esbuild/build.mjs' },
    commands: [NODE_NEXT, { run: ['./build.mjs'] }, { run: ['./main.js', 'block'], alone: 'bundle', answers: THREAD }],
  },
  {
    name: 'webpack',
    type: 'commonjs',
    packages: {
      ...nest12,
      '@nestjs/cli': '12.0.8',
      'fork-ts-checker-webpack-plugin': '9.1.0',
      'ts-loader': '9.6.2',
      'tsconfig-paths-webpack-plugin': '4.2.0',
      webpack: '5.113.0',
      'webpack-node-externals': '3.0.0',
    },
    files: {
      ...APPLICATION,
      'tsconfig.json': 'recipes/webpack/tsconfig.json',
      'nest-cli.json': 'recipes/webpack/nest-cli.json',
      'webpack.config.js': 'recipes/webpack/webpack.config.js',
    },
    commands: [
      { run: ['@nestjs/cli/bin/nest.js', 'build', '--webpack'] },
      { run: ['./main.js', 'block'], alone: 'dist', answers: THREAD },
    ],
  },
  {
    name: 'ncc',
    type: 'module',
    packages: { ...nest12, ...ncc },
    files: { ...APPLICATION, ...TSCONFIG, 'copy.mjs': 'recipes/ncc/copy.mjs' },
    commands: [
      NODE_NEXT,
      { run: ['@vercel/ncc/dist/ncc/cli.js', 'build', 'dist/main.js', '-o', 'bundle'] },
      { run: ['./index.js', 'wait'], alone: 'bundle', answers: once('main thread') },
      {
        run: [
          '@vercel/ncc/dist/ncc/cli.js',
          'build',
          'node_modules/nestjs-cyclone/dist/worker/leases/lease-thread.js',
          '-o',
          'thread',
        ],
      },
      { run: ['./copy.mjs', 'thread/index.js', 'bundle/lease-thread.js'] },
      { run: ['./index.js', 'block'], alone: 'bundle', answers: THREAD },
    ],
  },
  {
    name: 'minified',
    type: 'commonjs',
    packages: { ...nest12, ...esbuild },
    files: {
      'src/main.ts': 'recipes/minified/main.ts',
      'build.mjs': 'recipes/minified/build.mjs',
      ...NOT_INSTALLED,
    },
    commands: [
      { run: ['./build.mjs'] },
      {
        run: ['./first.js'],
        alone: 'bundle',
        answers: { created: [true, true], results: ['placed 4711', 'cancelled 4711'] },
      },
      {
        run: ['./second.js'],
        alone: 'bundle',
        answers: { created: [false, false], results: ['placed 4711', 'cancelled 4711'] },
      },
      { run: ['./unnamed.js'], alone: 'bundle', refuses: '@Workflow({ name:' },
    ],
  },
  {
    name: 'ts-jest',
    type: 'commonjs',
    packages: { ...nest11, ...tsJest, '@nestjs/testing': '11.2.6' },
    files: {
      ...JEST,
      'jest.config.js': 'recipes/jest/ts-jest.config.js',
      'tsconfig.json': 'recipes/jest/tsconfig.json',
    },
    commands: [{ run: ['jest/bin/jest.js'], env: { RENEWED_BY: 'main thread' } }],
  },
  {
    name: 'swc-jest',
    type: 'commonjs',
    packages: { ...nest12, ...jest, '@swc/jest': '0.2.39', '@swc/core': '1.16.22', '@nestjs/testing': '12.1.1' },
    files: { ...JEST, 'jest.config.js': 'recipes/jest/swc.config.js', 'tsconfig.json': 'recipes/jest/tsconfig.json' },
    commands: [{ run: ['jest/bin/jest.js'] }],
  },
  {
    name: 'jest-node-24',
    node: '24.21.0',
    type: 'commonjs',
    packages: { ...nest12, ...tsJest, '@nestjs/testing': '12.1.1' },
    files: {
      ...JEST,
      'jest.config.js': 'recipes/jest/node-24.config.js',
      'tsconfig.json': 'recipes/jest/tsconfig.json',
    },
    commands: [{ run: ['jest/bin/jest.js'], env: { NODE_OPTIONS: '--experimental-vm-modules' } }],
  },
  {
    name: 'vitest',
    node: '22.23.3',
    type: 'module',
    packages: {
      ...nest12,
      '@nestjs/testing': '12.1.1',
      '@swc/core': '1.16.22',
      'unplugin-swc': '2.0.0',
      vitest: '5.1.2',
      vite: '8.4.0',
      '@types/node': '22.19.1',
    },
    files: {
      ...JEST,
      'vitest.config.mjs': 'recipes/vitest/vitest.config.mjs',
      'tsconfig.json': 'recipes/vitest/tsconfig.json',
    },
    commands: [{ run: ['vitest/vitest.mjs', 'run'] }],
  },
  {
    name: 'module-resolution',
    type: 'commonjs',
    packages: nest11,
    files: { ...APPLICATION, ...TSCONFIG, 'src/admin.ts': 'recipes/module-resolution/admin.ts' },
    commands: [
      tsc('--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '6.0'),
      { run: ['./dist/main.js', 'short'], answers: THREAD },
      tsc('--module', 'commonjs', '--moduleResolution', 'bundler'),
      { run: ['./dist/main.js', 'short'], answers: THREAD },
      NODE_NEXT,
      { run: ['./dist/main.js', 'short'], answers: THREAD },
      // TypeScript's node16 is a Node whose `require` knows no ESM: an application of CommonJS takes `nodenext` or `node20`.
      { ...tsc('--module', 'node16'), refuses: 'TS1479' },
      tsc('--module', 'node20'),
    ],
  },
  {
    name: 'module-resolution-esm',
    type: 'module',
    packages: nest12,
    files: { ...APPLICATION, ...TSCONFIG, 'src/admin.ts': 'recipes/module-resolution/admin.ts' },
    commands: [
      tsc('--module', 'node16'),
      { run: ['./dist/main.js', 'short'], answers: THREAD },
      tsc('--module', 'esnext', '--moduleResolution', 'bundler'),
      { run: ['./dist/main.js', 'short'], answers: THREAD },
    ],
  },
  {
    name: 'yarn-pnp',
    manager: 'yarn',
    type: 'module',
    packages: nest12,
    files: { ...APPLICATION, ...TSCONFIG, '.yarnrc.yml': 'recipes/yarn/.yarnrc.yml' },
    commands: [NODE_NEXT, { run: ['./dist/main.js', 'short'], answers: THREAD }],
  },
  {
    name: 'pnpm',
    manager: 'pnpm',
    type: 'module',
    packages: nest12,
    files: { ...APPLICATION, ...TSCONFIG, 'pnpm-workspace.yaml': 'recipes/pnpm/pnpm-workspace.yaml' },
    commands: [NODE_NEXT, { run: ['./dist/main.js', 'short'], answers: THREAD }],
  },
];
