import { execFile, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../structure/source-files.js';
import { cyclone, shell } from './command.js';

const run = promisify(execFile);
const PACKAGE = join(ROOT, 'libs/cyclone');
const manifest = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')) as {
  name: string;
  bin: Record<string, string>;
  files: string[];
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cyclone-clone-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the command of the package', () => {
  it('has the name of the package too, so that npx finds this package and no other (F25)', () => {
    expect(Object.keys(manifest.bin)).toEqual(['cyclone', manifest.name]);
    expect(new Set(Object.values(manifest.bin)).size).toBe(1);
  });

  it('is a file of the repository that npm can link before anything is built (F53)', async () => {
    for (const file of Object.values(manifest.bin)) {
      expect(file.startsWith('./dist/')).toBe(false);
      expect(manifest.files).toContain(file.split('/')[1]);
      expect(statSync(join(PACKAGE, file)).mode & 0o111).not.toBe(0);
      const { stdout } = await run('git', ['ls-files', '-s', file], { cwd: PACKAGE }).catch(() => ({ stdout: null }));
      if (stdout !== null) expect(stdout).toMatch(/^100755 /); // outside of a clone there is no git to ask
    }
  });

  it('says before the first build what to do, and works after it (F53)', async () => {
    const library = join(folder, 'libs/cyclone');
    mkdirSync(library, { recursive: true });
    for (const part of ['package.json', 'bin']) cpSync(join(PACKAGE, part), join(library, part), { recursive: true });
    const [file = ''] = Object.values(manifest.bin);
    const call = () => run(process.execPath, [join(library, file), '--version']);
    await expect(call()).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'cyclone: The package has not been built. In a clone of the repository run npm run build first.\n',
    });
    cpSync(join(PACKAGE, 'dist'), join(library, 'dist'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
    expect((await call()).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

const full = '/dev/full';
const onLinux = existsSync(full) ? describe : describe.skip;

onLinux('output that nobody takes', () => {
  it('ends the command in words when the disk is full (F23)', async () => {
    const disk = openSync(full, 'w');
    const child = spawn(process.execPath, [join(PACKAGE, 'bin/cyclone.js'), 'migrate', 'sql'], {
      stdio: ['ignore', disk, 'pipe'],
    });
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const code = await new Promise((resolve) => child.on('close', resolve));
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cyclone: The output could not be written: ENOSPC[^\n]*\n$/),
    });
  });

  it('keeps its exit code when the messages are lost (F23)', async () => {
    expect(await shell(`cyclone nonsense 2> ${full}`)).toEqual({ code: 2, stdout: '', stderr: '' });
  });
});

describe('the URL of the database', () => {
  it.each([
    'postgres://u:12#sesame@127.0.0.1/db',
    'postgres://u:12#sesame',
    'postgres://u:12/sesame@127.0.0.1/db',
    'postgres://u:12?sesame@127.0.0.1/db',
    'postgres://u:ses#ame@127.0.0.1:5432/db',
  ])('with a special character in its password is refused with the remedy, and not shown: %s (F23)', async (url) => {
    const { code, stdout, stderr } = await cyclone(['stats'], { url });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('# is %23');
    expect(stderr).not.toMatch(/sesame|ame@|u:12/);
  });
});
