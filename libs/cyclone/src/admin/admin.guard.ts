import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { AdminRequest, ResolvedAdminOptions } from './admin-options.js';
import { ADMIN_OPTIONS, ADMIN_ROUTE } from './admin.tokens.js';
import { actorOf, noteCaller } from './caller.js';
import { permissionsOf } from './permissions.js';
import { RefusedRequest } from './problem.js';
import type { AnyRoute } from './route.js';

/** What a mutation has to carry, so that no page of another origin can make a browser send it. */
export const ADMIN_HEADER = 'x-cyclone-admin';

/** Runs after the guards of the application: what may this caller do, and could somebody else have sent this in their name? */
@Injectable()
export class AdminGuard implements CanActivate {
  constructor(@Inject(ADMIN_OPTIONS) private readonly options: ResolvedAdminOptions) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<AdminRequest>();
    const route = Reflect.getMetadata(ADMIN_ROUTE, context.getHandler()) as AnyRoute | undefined;
    const permissions = permissionsOf(this.options.access ? await this.options.access(request) : 'all');
    if (!route || !permissions.includes(route.permission)) {
      throw new RefusedRequest('CYCLONE_FORBIDDEN', `This needs the permission ${route?.permission ?? 'of a route'}.`);
    }
    if (route.method !== 'GET') this.checkMutation(request);
    const user = this.options.getUser ? await this.options.getUser(request) : request.user;
    noteCaller(request, { actor: actorOf(user), permissions });
    return true;
  }

  private checkMutation({ headers }: AdminRequest): void {
    if (this.options.readOnly) {
      throw new RefusedRequest('CYCLONE_READ_ONLY', 'This API was opened for looking only. Nothing was changed.');
    }
    if (headers[ADMIN_HEADER] !== '1') {
      throw new RefusedRequest('CYCLONE_HEADER_MISSING', `Send the header ${ADMIN_HEADER}: 1. Nothing was changed.`);
    }
    const type = headers['content-type'];
    if (typeof type !== 'string' || type.split(';')[0]?.trim().toLowerCase() !== 'application/json') {
      throw new RefusedRequest(
        'CYCLONE_UNSUPPORTED_MEDIA_TYPE',
        'Send the header content-type: application/json, with {} as the least body. Nothing was changed.',
      );
    }
  }
}
