// Starts in a schema that has no tables, as an application does that was deployed before its migration.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Application } from './orders.js';

const url = process.env['DATABASE_URL'] ?? '';
const module = Application.of({ url, schema: 'nowhere', migrationsRun: false, worker: {} });
if (process.argv[2] === 'http') {
  const app = await NestFactory.create(module);
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
} else {
  await NestFactory.createApplicationContext(module);
}
