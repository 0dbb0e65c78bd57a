import { Readable } from 'node:stream';
import { readTargets, writeTarget } from './targets.js';

const read = (text: string) => readTargets(['-'], Readable.from([text]));

describe('targets', () => {
  it('come from the command line, each once', async () => {
    expect(await readTargets(['1', '2', '1'])).toEqual([{ runId: '1' }, { runId: '2' }]);
    await expect(readTargets(['1', '-'])).rejects.toThrow('not both');
  });

  it('come from stdin, whatever blanks surround them; no line is passed over', async () => {
    expect(await read(' 1 \r\n\n2\ta node \n3 x')).toEqual([
      { runId: '1' },
      { runId: '2', node: 'a node' },
      { runId: '3', node: 'x' },
    ]);
    expect(await read('')).toEqual([]);
    await expect(read('1 "x')).rejects.toThrow('must be JSON');
  });

  it.each(['charge', 'a node', 'item[7]', ' a ', '"quoted"', 'two\n3 lines', '\u001b[2J', 'ü'])(
    'name a node so that it is read back as it was, on one line: %j',
    async (node) => {
      const line = writeTarget('42', node);
      expect(line).not.toMatch(/[\n\u001b]/);
      expect(await read(line)).toEqual([{ runId: '42', node }]);
    },
  );
});
