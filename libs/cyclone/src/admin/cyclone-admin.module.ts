import { Module, type DynamicModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { OperatorClient } from '../client/operator-client.js';
import type { CycloneError } from '../model/errors/cyclone-error.js';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { cycloneLabel } from '../nest/cyclone-names.js';
import { getEngineToken, getOperatorClientToken } from '../nest/cyclone.tokens.js';
import { startupError } from '../nest/startup.error.js';
import type { Engine } from '../store/engine.js';
import type { CycloneAdminOptions, ResolvedAdminOptions } from './admin-options.js';
import { createAdminController } from './admin.controller.js';
import { AdminGuard } from './admin.guard.js';
import { AdminService } from './admin.service.js';
import { AdminStartup } from './admin.startup.js';
import { ADMIN_OPTIONS } from './admin.tokens.js';
import { resolveAdminOptions } from './resolve-admin-options.js';

/**
 * The JSON admin API of a Cyclone in the same application: `<path>/api/v1/…`. Import it once for each Cyclone, beside its CycloneModule.
 * Wrong options, and missing guards above all, keep the application from starting (R22).
 */
@Module({})
export class CycloneAdminModule {
  static forRoot(given?: CycloneAdminOptions): DynamicModule {
    const { options, problems } = resolveAdminOptions(given);
    return {
      module: CycloneAdminModule,
      imports: problems.length === 0 ? [...(given?.imports ?? [])] : [],
      controllers: [createAdminController(options)],
      providers: [
        { provide: ADMIN_OPTIONS, useValue: options },
        AdminGuard,
        {
          provide: AdminService,
          useFactory: (engine: Engine | undefined, operator: OperatorClient | undefined) =>
            serviceOf(engine, operator, options, problems),
          inject: [
            { token: getEngineToken(options.name), optional: true },
            { token: getOperatorClientToken(options.name), optional: true },
          ],
        },
        {
          provide: AdminStartup,
          useFactory: (host: HttpAdapterHost) => new AdminStartup(options, host),
          inject: [HttpAdapterHost],
        },
      ],
    };
  }
}

function serviceOf(
  engine: Engine | undefined,
  operator: OperatorClient | undefined,
  options: ResolvedAdminOptions,
  problems: readonly CycloneError[],
): AdminService {
  const refusal = startupError(problems);
  if (refusal) throw refusal;
  if (!engine || !operator) {
    throw new InvalidOptionError(
      'name',
      `of CycloneAdminModule means ${cycloneLabel(options.name)}, which the application does not import.`,
    );
  }
  return new AdminService(engine, operator, options);
}
