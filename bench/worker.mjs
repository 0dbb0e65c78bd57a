// One worker process: reports over IPC what its parent asks for.
import { NestFactory } from '@nestjs/core';
import { benchModule, progress } from './workload.mjs';

const { url, schema, queues, poolSize } = JSON.parse(process.argv[2]);
const app = await NestFactory.createApplicationContext(benchModule(url, schema, { queues }, poolSize), {
  logger: ['warn', 'error'],
});
process.on('message', async (question) => {
  if (question === 'progress') process.send({ ...progress, now: performance.now() });
  if (question === 'reset') {
    progress.started = undefined;
    progress.count = 0;
    process.send('reset');
  }
  if (question === 'memory') {
    globalThis.gc?.();
    process.send({ heap: process.memoryUsage().heapUsed, cpu: process.cpuUsage() });
  }
  if (question === 'stop') {
    await app.close();
    process.disconnect();
  }
});
process.on('disconnect', () => process.exit());
process.send('ready');
