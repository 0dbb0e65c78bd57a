// A worker process: works until it is told to end.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Application } from './orders.js';

const url = process.env['DATABASE_URL'] ?? '';
const worker = { leaseTtl: '2s', pollInterval: '200ms' } as const;
const app = await NestFactory.createApplicationContext(
  Application.of({ url, schema: 'engine', migrationsRun: true, worker }),
  { logger: ['warn', 'error', 'fatal'] },
);
app.enableShutdownHooks();
process.on('disconnect', () => process.exit(1)); // the parent is gone
process.send?.('ready');
