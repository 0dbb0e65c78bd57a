import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../../../migrations', import.meta.url));

describe('the migrations', () => {
  it('are of ASCII alone, so that psql runs them under any encoding of the client and the database (F15)', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.sql'));
    expect(files.length).toBeGreaterThan(50);
    const others = files.filter((file) => /[^\n\t -~]/.test(readFileSync(`${folder}/${file}`, 'utf8')));
    expect(others).toEqual([]);
  });
});
