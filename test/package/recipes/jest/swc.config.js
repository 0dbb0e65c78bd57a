const swc = {
  module: { type: 'commonjs' },
  jsc: {
    target: 'es2022',
    keepClassNames: true,
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true },
  },
};

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: 'node',
  testRegex: 'src/.*\\.spec\\.ts$',
  transform: { '^.+\\.[tj]s$': ['@swc/jest', swc] },
  // ESM packages, which Jest gets as CommonJS, like everything else. Nest is one of them from version 12 on.
  transformIgnorePatterns: ['/node_modules/(?!(nestjs-cyclone|@nestjs)/)'],
};
