import type { AdminRequest } from './admin-options.js';
import { RefusedRequest } from './problem.js';

/** What Node knows of a request whose content nobody has read yet. Fastify keeps its own in `raw`. */
interface Incoming {
  readonly readableDidRead?: boolean;
}

/**
 * The body as a parser of the application has read it. An application may have none, or only for some of its routes: then a body with a
 * filter looks like one without, and must not be taken for it.
 *
 * @throws RefusedRequest when nobody has parsed it as JSON
 */
export function parsedBody(request: AdminRequest): unknown {
  const { body, headers } = request;
  // Some parsers leave an empty object behind for what they did not read.
  const { raw = request } = request as { raw?: unknown };
  const unread = body === undefined || (isEmpty(body) && (raw as Incoming).readableDidRead === false);
  const announced = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (unread && !announced) {
    throw new RefusedRequest('CYCLONE_INVALID_REQUEST', 'The body is missing: send {} at least. Nothing was changed.');
  }
  if (unread || ArrayBuffer.isView(body)) {
    throw new RefusedRequest(
      'CYCLONE_UNSUPPORTED_MEDIA_TYPE',
      'Nothing in this application has parsed the body as JSON. Leave bodyParser on in NestFactory.create, or mount a parser of JSON ' +
        'for these routes before they are registered. Nothing was changed.',
    );
  }
  return body;
}

function isEmpty(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Object.keys(body).length === 0;
}
