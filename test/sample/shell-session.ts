import { spawn } from 'node:child_process';
import { ROOT } from '../structure/source-files.js';

const END = '-- end of the block --';

/** A shell in the repository's folder that keeps its variables from one block of command lines to the next. */
export class ShellSession {
  private readonly shell;
  private readonly ended: Promise<void>;
  private output = '';
  private look = (): void => undefined;

  constructor(env: NodeJS.ProcessEnv) {
    this.shell = spawn('sh', ['-e'], { cwd: ROOT, env, stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.shell.stdout, this.shell.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
        this.look();
      });
    }
    this.shell.stdin.on('error', () => undefined); // it ends at the first command that fails
    this.ended = new Promise((resolve) => this.shell.on('close', resolve));
  }

  /**
   * Gives what the block has written.
   * @throws Error with that when one of its commands fails
   */
  async run(block: string): Promise<string> {
    this.output = '';
    const done = new Promise<void>((resolve) => {
      this.look = () => this.output.includes(END) && resolve();
    });
    // Commands must not read what is meant for the shell.
    this.shell.stdin.write(`{\n${block}\n} </dev/null\necho '${END}'\n`);
    await Promise.race([done, this.ended]);
    if (!this.output.includes(END)) throw new Error(`A command failed:\n${block}\n${this.output}`);
    return this.output.replace(END, '').trim();
  }

  async close(): Promise<void> {
    this.shell.stdin.end();
    await this.ended;
  }
}
