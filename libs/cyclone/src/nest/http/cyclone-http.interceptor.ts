import {
  HttpStatus,
  Injectable,
  Logger,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { catchError, type Observable } from 'rxjs';
import { secretsOf, withoutSecrets } from '../../model/redact.js';
import { toHttpException } from './http-exception.js';

/**
 * Answers errors of Cyclone that a controller lets through with the status that fits, where Nest would answer 500: 404 for an unknown
 * run, 409 where the state of a run stands in the way, 422 for an input that is refused, 503 without a database. The body has the
 * stable `code`. Other errors, and errors outside HTTP, pass as they are.
 *
 * An interceptor and not a filter, so that exception filters of the application still see the exception and decide on its form. For all
 * controllers: `{ provide: APP_INTERCEPTOR, useClass: CycloneHttpInterceptor }`; for one: `@UseInterceptors(CycloneHttpInterceptor)`. What a
 * guard throws comes before any interceptor: `toHttpException` does the same there.
 */
@Injectable()
export class CycloneHttpInterceptor implements NestInterceptor {
  private readonly logger = new Logger('Cyclone HTTP');

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'http') return next.handle();
    return next.handle().pipe(
      catchError((thrown: unknown) => {
        const exception = toHttpException(thrown);
        if (!exception) throw thrown;
        // Nest logs what it answers with 500; an outage must not lose that.
        if (exception.getStatus() === HttpStatus.SERVICE_UNAVAILABLE) {
          this.logger.error(withoutSecrets((thrown as Error).message, secretsOf(thrown)));
        }
        throw exception;
      }),
    );
  }
}
