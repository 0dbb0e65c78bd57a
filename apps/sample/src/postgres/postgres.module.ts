import { Global, Module } from '@nestjs/common';
import { Settings } from '../settings.js';
import { startEmbeddedServer } from './embedded-server.js';
import { SERVER, Postgres } from './postgres.js';

@Global()
@Module({
  providers: [
    {
      provide: SERVER,
      inject: [Settings],
      useFactory: ({ databaseUrl, postgresFolder }: Settings) =>
        databaseUrl ? { url: databaseUrl } : startEmbeddedServer(postgresFolder),
    },
    Postgres,
  ],
  exports: [Postgres],
})
export class PostgresModule {}
