import {
  Controller,
  Get,
  Header,
  HttpCode,
  Inject,
  Post,
  Req,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
} from '@nestjs/common';
import type { Type } from '../model/options.js';
import type { AdminRequest, ResolvedAdminOptions } from './admin-options.js';
import { AdminGuard } from './admin.guard.js';
import { AdminService } from './admin.service.js';
import { ADMIN_ROUTE } from './admin.tokens.js';
import { callerOf } from './caller.js';
import { API_PATH } from './open-api.js';
import { ProblemFilter } from './problem.filter.js';
import type { AnyRoute } from './route.js';
import { ROUTES } from './routes/index.js';
import { parsedBody } from './parsed-body.js';
import { valid } from './valid.js';

/** The controller of one CycloneAdminModule: one method for each line of the table of routes. */
export function createAdminController({ path, guards }: Pick<ResolvedAdminOptions, 'path' | 'guards'>): Type {
  @Controller({ path: `${path}/${API_PATH}`, version: VERSION_NEUTRAL })
  @UseGuards(...guards, AdminGuard)
  @UseFilters(ProblemFilter)
  class CycloneAdminController {
    constructor(@Inject(AdminService) readonly service: AdminService) {}
  }
  for (const route of ROUTES) addRoute(CycloneAdminController.prototype, route);
  return CycloneAdminController;
}

function addRoute(prototype: { readonly service: AdminService }, route: AnyRoute): void {
  const { name, method, path } = route;
  const descriptor: PropertyDescriptor = {
    configurable: true,
    async value(this: { readonly service: AdminService }, request: AdminRequest): Promise<object> {
      return answer(this.service, route, request);
    },
  };
  Object.defineProperty(prototype, name, descriptor);
  // The request as a whole: no pipe of the application comes between.
  Req()(prototype, name, 0);
  Reflect.defineMetadata(ADMIN_ROUTE, route, descriptor.value as object);
  const decorators = [
    method === 'GET' ? Get(path) : Post(path),
    HttpCode(200),
    Header('Cache-Control', 'no-store'),
    Header('X-Content-Type-Options', 'nosniff'),
  ];
  for (const decorate of decorators) decorate(prototype, name, descriptor);
}

async function answer(service: AdminService, route: AnyRoute, request: AdminRequest): Promise<object> {
  const query = await valid<object>(request.query, route.query, 'query');
  const body = route.method === 'GET' ? {} : await valid<object>(parsedBody(request), route.body, 'body');
  const { id = '', node = '' } = request.params;
  const { reader, operator } = service;
  const caller = callerOf(request);
  return route.handle({ service, reader, operator, caller, id, node, query, body, base: baseOf(request) });
}

/** The path of the request up to the version of this API: prefixes and mounts included. */
function baseOf(request: AdminRequest): string {
  const { originalUrl = request.url } = request as { originalUrl?: string };
  const end = originalUrl.indexOf(`/${API_PATH}/`);
  return end < 0 ? `/${API_PATH}` : originalUrl.slice(0, end + API_PATH.length + 1);
}
