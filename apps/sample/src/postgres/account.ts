import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The operating system's user that the server runs as. */
export interface Account {
  uid: number;
  gid: number;
}

/** PostgreSQL refuses to run as root. Root lends it an account without rights; everybody else uses their own (undefined). */
export async function serverAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'nobody'])));
  return { uid: Number(uid!.stdout), gid: Number(gid!.stdout) };
}
