import { InvalidOptionError } from '../model/errors/index.js';
import { resolveWorkerOptions, type WorkerOptions } from './worker-options.js';

describe('the options of a worker', () => {
  it('have defaults: every queue that a handler names with 10 slots, an id of its own', () => {
    const options = resolveWorkerOptions({}, ['default', 'mail', 'default']);
    expect(Object.fromEntries(options.queues)).toEqual({ default: 10, mail: 10 });
    expect(options.id).toMatch(new RegExp(`:${process.pid}:[0-9a-f]{8}$`));
    expect(options).toMatchObject({
      leaseTtlMs: 30_000,
      stallLimitMs: 600_000,
      pollIntervalMs: 1_000,
      maxReclaims: 20,
      shutdownTimeoutMs: 25_000,
      autoStart: true,
      listen: true,
    });
    expect(resolveWorkerOptions().id).not.toBe(resolveWorkerOptions().id);
  });

  it('say it when there is no bound on reclaims', () => {
    expect(resolveWorkerOptions({ maxReclaims: false }).maxReclaims).toBeNull();
  });

  it.each<[string, WorkerOptions]>([
    ['worker.id', { id: '' }],
    ['worker.id', { id: 'x'.repeat(201) }],
    ['worker.queues', { queues: {} }],
    ['worker.queues', { queues: null as never }],
    ['worker.queues.mail', { queues: { mail: 0 } }],
    ['worker.queues.mail', { queues: { mail: 1.5 } }],
    ['worker.leaseTtl', { leaseTtl: 50 }],
    ['worker.leaseTtl', { leaseTtl: 'soon' as never }],
    ['worker.stallLimit', { stallLimit: 0 }],
    ['worker.pollInterval', { pollInterval: 1 }],
    ['worker.maxReclaims', { maxReclaims: -1 }],
    ['worker.shutdownTimeout', { shutdownTimeout: -1 }],
  ])('are refused with the name of the option: %s', (option, options) => {
    expect(() => resolveWorkerOptions(options)).toThrow(
      expect.objectContaining({ option, code: InvalidOptionError.code }) as Error,
    );
  });
});
