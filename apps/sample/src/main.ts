import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Postgres } from './postgres/postgres.js';
import { Settings } from './settings.js';

async function main(): Promise<void> {
  const settings = Settings.fromEnvironment();
  const app = await NestFactory.create(AppModule.forRoot(settings), { abortOnError: false });
  // On Ctrl-C and SIGTERM, in this order: no more requests, steps in hand are finished, connections close, PostgreSQL stops.
  app.enableShutdownHooks([], { useProcessExit: true });
  try {
    await app.listen(settings.port, settings.host);
  } catch (error) {
    await app.close();
    throw error;
  }
  console.log(welcome(await app.getUrl(), app.get(Postgres), settings));
}

function welcome(url: string, postgres: Postgres, { adminToken }: Settings): string {
  const host = url.replace(/\[::1?\]|127\.0\.0\.1|0\.0\.0\.0/, 'localhost');
  const order = {
    id: `order-${Date.now()}`,
    email: 'you@example.com',
    lines: [{ productId: '11', unitPrice: '14.00', quantity: 12, discount: '0.05' }],
  };
  const admin = adminToken
    ? `curl -s ${host}/admin/api/v1/runs -H "Authorization: Bearer $ADMIN_TOKEN"`
    : 'closed; set ADMIN_TOKEN to open /admin/api/v1/runs';
  return `
  Application  ${host}
  PostgreSQL   ${postgres.describe()}
  Admin        ${admin}
  Command      ${postgres.isOwn ? `DATABASE_URL=${postgres.url} ` : ''}node libs/cyclone/bin/cyclone.js runs list

  Place an order:
  curl -s ${host}/orders -H 'Content-Type: application/json' -d '${JSON.stringify(order)}'

  See what became of it:
  curl -s ${host}/orders/${order.id}

  Ctrl-C stops everything in order.
`;
}

function explain(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE') return `${message}. Choose another port: PORT=3001 npm start`;
  return message;
}

main().catch((error: unknown) => {
  console.error(`\nThe application did not start: ${explain(error)}`);
  process.exit(1);
});
