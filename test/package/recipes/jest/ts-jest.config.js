/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  testRegex: 'src/.*\\.spec\\.ts$',
  transform: {
    '^.+\\.ts$': 'ts-jest',
    // The package is ESM: Jest gets it as CommonJS, like everything else.
    '/node_modules/nestjs-cyclone/.+\\.js$': [
      'ts-jest',
      { diagnostics: false, tsconfig: { allowJs: true, module: 'CommonJS', target: 'ES2022', isolatedModules: true } },
    ],
  },
  transformIgnorePatterns: ['/node_modules/(?!nestjs-cyclone/)'],
};
