import { watchOutput } from './output/failing-output.js';

watchOutput();

/** Commander is an optional peer of the package: applications that never call the command do not need it. */
async function isCommanderThere(): Promise<boolean> {
  try {
    const { Command } = await import('commander');
    return typeof Command?.prototype.optsWithGlobals === 'function';
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') return false;
    throw error;
  }
}

if (await isCommanderThere()) {
  const { run } = await import('./program.js');
  process.exitCode = await run(process.argv.slice(2));
} else {
  process.stderr.write(
    'cyclone: The command needs commander 14. Install it beside nestjs-cyclone: npm install commander@14\n',
  );
  process.exitCode = 1;
}
