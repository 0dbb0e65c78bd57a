/** What Nest, class-transformer and TypeORM load only where it is installed: esbuild must leave it out. */
export const NOT_INSTALLED = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-express',
  'class-transformer/storage',
  'pg-native',
];
