import { Module, ValidationPipe, type DynamicModule } from '@nestjs/common';
import { APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CycloneHttpInterceptor, CycloneModule } from 'nestjs-cyclone';
import { AdminModule } from './admin/admin.module.js';
import { CreateOrders1700000000000 } from './migrations/1700000000000-create-orders.js';
import { CreateCardTerminal1700000001000 } from './migrations/1700000001000-create-card-terminal.js';
import { OrdersModule } from './orders/orders.module.js';
import { Postgres } from './postgres/postgres.js';
import { PostgresModule } from './postgres/postgres.module.js';
import { Settings } from './settings.js';

@Module({})
export class AppModule {
  static forRoot(settings: Settings): DynamicModule {
    return {
      module: AppModule,
      global: true,
      imports: [
        // First, so that it is the last to go: the database outlives everybody who uses it.
        PostgresModule,
        TypeOrmModule.forRootAsync({
          inject: [Postgres],
          useFactory: (postgres: Postgres) => ({
            type: 'postgres',
            url: postgres.url,
            extra: settings.schema === 'public' ? {} : { options: `-c search_path=${settings.schema}` },
            autoLoadEntities: true,
            migrations: [CreateOrders1700000000000, CreateCardTerminal1700000001000],
            migrationsRun: true,
            poolSize: 20,
            retryAttempts: 0,
          }),
        }),
        // Everything that Cyclone needs to know. It finds workflows and steps by itself, and uses TypeORM's DataSource.
        CycloneModule.forRoot({ schema: settings.schema, migrationsRun: true, worker: settings.worker }),
        OrdersModule,
        AdminModule,
      ],
      providers: [
        { provide: Settings, useValue: settings },
        // An unknown run is a 404 for whoever asks for it, and so on, where it would be a 500.
        { provide: APP_INTERCEPTOR, useClass: CycloneHttpInterceptor },
        { provide: APP_PIPE, useValue: new ValidationPipe({ whitelist: true, transform: true }) },
      ],
      exports: [Settings],
    };
  }
}
