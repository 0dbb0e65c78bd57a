import { randomUUID } from 'node:crypto';
import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { secretsOf, withoutSecrets } from '../model/redact.js';
import { internalProblem, problemOf } from './problem.js';

/** Answers whatever a guard or a route throws with RFC 9457, and keeps what callers must not see in the log. */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  private readonly logger = new Logger('Cyclone admin');

  constructor(private readonly host: HttpAdapterHost) {}

  catch(thrown: unknown, context: ArgumentsHost): void {
    const adapter = this.host.httpAdapter;
    const response: unknown = context.switchToHttp().getResponse();
    const problem = problemOf(thrown) ?? this.fault(thrown);
    if (adapter.isHeadersSent(response)) {
      adapter.end(response);
      return;
    }
    adapter.setHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
    adapter.setHeader(response, 'Cache-Control', 'no-store');
    // RFC 9110: a 405 says what is allowed. On a path that only has a mutation that is nothing.
    if (problem.status === 405) adapter.setHeader(response, 'Allow', '');
    adapter.reply(response, JSON.stringify(problem), problem.status);
  }

  private fault(thrown: unknown): ReturnType<typeof internalProblem> {
    const id = randomUUID();
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    const secrets = secretsOf(thrown);
    this.logger.error(
      `${id}: ${withoutSecrets(error.message, secrets)}`,
      error.stack === undefined ? undefined : withoutSecrets(error.stack, secrets),
    );
    return internalProblem(id);
  }
}
