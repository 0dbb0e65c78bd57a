import type { IncomingMessage } from 'node:http';
import { BadRequestException, PayloadTooLargeException, UnsupportedMediaTypeException } from '@nestjs/common';

/** The size of a CSV body in bytes; some 30,000 lines of orders. */
export const MAX_CSV_BYTES = 1024 * 1024;

/**
 * The text of a request's body. Nest's body parsers leave `text/csv` alone, so it is still to be read, and never more than the limit of it
 * is kept.
 * @throws UnsupportedMediaTypeException, PayloadTooLargeException; BadRequestException when it is not UTF-8
 */
export async function readCsvBody(request: IncomingMessage): Promise<string> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = request.headers;
  if (!/^text\/csv\s*(;|$)/i.test(type)) throw new UnsupportedMediaTypeException('Send Content-Type: text/csv.');
  if (encoding !== 'identity')
    throw new UnsupportedMediaTypeException(`Send it without Content-Encoding: ${encoding}.`);

  const chunks: Buffer[] = [];
  let bytes = 0;
  // The iterator must not destroy the request, or the client gets no answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_CSV_BYTES) {
      request.resume(); // what still comes is read and thrown away
      throw new PayloadTooLargeException(`The file is larger than ${MAX_CSV_BYTES} bytes: send it in parts.`);
    }
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (error) {
    throw new BadRequestException('The file is not encoded in UTF-8.', { cause: error });
  }
}
