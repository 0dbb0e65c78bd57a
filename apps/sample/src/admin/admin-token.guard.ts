import { createHash, timingSafeEqual } from 'node:crypto';
import {
  Injectable,
  ForbiddenException,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { Settings } from '../settings.js';

/** Opens a route to who sends `Authorization: Bearer <ADMIN_TOKEN>`; to nobody when no token is set. */
@Injectable()
export class AdminTokenGuard implements CanActivate {
  constructor(private readonly settings: Settings) {}

  canActivate(context: ExecutionContext): boolean {
    const { adminToken } = this.settings;
    if (!adminToken) throw new ForbiddenException('The admin routes are closed: ADMIN_TOKEN is not set.');

    const { headers } = context.switchToHttp().getRequest<{ headers: { authorization?: string } }>();
    const [, token = ''] = /^Bearer (.+)$/i.exec(headers.authorization ?? '') ?? [];
    if (!isEqual(token, adminToken)) throw new UnauthorizedException('Send the header Authorization: Bearer <token>.');
    return true;
  }
}

/** Takes the same time wherever the texts differ; hashes have one length, whatever they are made of. */
function isEqual(left: string, right: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(left), hash(right));
}
