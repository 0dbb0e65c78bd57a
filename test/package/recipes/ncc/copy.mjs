import { copyFileSync } from 'node:fs';

const [from = '', to = ''] = process.argv.slice(2);
copyFileSync(from, to);
