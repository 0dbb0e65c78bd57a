import { createServer, connect, type AddressInfo, type Socket } from 'node:net';

/**
 * A way to a server that can go dark: then connections are accepted and nothing is ever answered. Whoever came this way can also vanish
 * without a farewell, and the way can lead to another server.
 */
export class SilentHost {
  private readonly sockets = new Set<Socket>();
  private readonly waiting: { readonly count: number; readonly done: () => void }[] = [];
  private silent = false;
  private swallowed = 0;

  private constructor(
    private target: { readonly host: string; readonly port: number },
    private readonly server = createServer(),
  ) {
    server.on('connection', (socket) => this.accept(socket));
  }

  /** @param url of the server that it leads to until it goes dark */
  static async before(url: string): Promise<SilentHost> {
    const { hostname, port } = new URL(url);
    const host = new SilentHost({ host: hostname, port: Number(port) });
    await new Promise<void>((resolve) => host.server.listen(0, '127.0.0.1', resolve));
    return host;
  }

  /** The same URL by way of this host. */
  through(url: string): string {
    const way = new URL(url);
    way.hostname = '127.0.0.1';
    way.port = String((this.server.address() as AddressInfo).port);
    return way.href;
  }

  /** Cuts every connection, and answers no new one. */
  goDark(): void {
    this.silent = true;
    this.cut();
  }

  /** From now on it leads to another server, or to nowhere: connections are cut, and new ones are refused. */
  leadTo(url: string | undefined): void {
    const { hostname, port } = new URL(url ?? 'postgres://127.0.0.1:1');
    this.target = { host: hostname, port: Number(port) };
    this.cut();
  }

  /** Nothing passes any more in either direction, and neither side hears that the other is gone. */
  vanish(): void {
    this.silent = true;
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  /** Resolves when so many connections wait in the dark. */
  async swallows(count: number): Promise<void> {
    if (this.swallowed >= count) return;
    await new Promise<void>((done) => this.waiting.push({ count, done }));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.cut();
    await closed;
  }

  private accept(socket: Socket): void {
    this.keep(socket);
    if (this.silent) {
      this.swallowed++;
      for (const { count, done } of this.waiting) if (this.swallowed >= count) done();
      return;
    }
    const onward = connect(this.target);
    this.keep(onward);
    socket.pipe(onward).pipe(socket);
    socket.on('close', () => onward.destroy());
    onward.on('close', () => socket.destroy());
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined); // its end follows
    socket.on('close', () => this.sockets.delete(socket));
  }

  private cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}
