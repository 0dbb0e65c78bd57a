// A worker process of the demo: the application without its HTTP side, working until its parent closes the channel.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from '../app.module.js';
import { Settings } from '../settings.js';

const settings = new Settings(JSON.parse(process.argv[2]!) as Partial<Settings>);
const app = await NestFactory.createApplicationContext(AppModule.forRoot(settings), { logger: ['error', 'fatal'] });

/** How long the end may take, when the database may be gone too. */
const PATIENCE_MS = 5_000;

async function stop(): Promise<void> {
  setTimeout(() => process.exit(1), PATIENCE_MS);
  await app.close();
  process.exit();
}

// Ctrl-C in the terminal reaches this process as well, but it is the parent who decides when to stop. When the parent is
// gone, in whatever way, so is the channel.
process.on('SIGINT', () => undefined);
process.on('disconnect', stop);
if (!process.connected) await stop();
