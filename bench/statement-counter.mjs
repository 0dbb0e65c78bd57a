// Stands between a process and its database, and counts the statements that it sends.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Bytes before the type of a message is known: startup messages have no type, all others do. */
const HEAD = 5;
/** Query and Execute of the wire protocol: each makes the server run something. */
const STATEMENTS = new Set(['Q'.charCodeAt(0), 'E'.charCodeAt(0)]);

/** @param {string} url the database @returns a URL to use in its place, and what was counted */
export async function countStatements(url) {
  const target = new URL(url);
  const counter = { statements: 0, connections: 0 };
  const server = createServer((client) => {
    counter.connections++;
    const upstream = connect(Number(target.port || 5432), target.hostname);
    const read = messages((type) => {
      if (STATEMENTS.has(type)) counter.statements++;
    });
    client.on('data', read).pipe(upstream).pipe(client);
    for (const one of [client, upstream]) one.on('error', () => client.destroy()).on('close', () => upstream.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxied = new URL(url);
  proxied.hostname = '127.0.0.1';
  proxied.port = String(server.address().port);
  return { url: proxied.href, counter, close: () => server.close() };
}

/** Calls `seen` with the type of every message behind the startup message. */
function messages(seen) {
  let rest = Buffer.alloc(0);
  let started = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const head = started ? HEAD : HEAD - 1;
      if (rest.length < head) return;
      const length = rest.readUInt32BE(head - 4) + head - 4;
      if (rest.length < length) return;
      if (started) seen(rest[0]);
      started = true;
      rest = rest.subarray(length);
    }
  };
}
