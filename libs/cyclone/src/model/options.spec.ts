import { resolveHandlerOptions } from './options.js';

describe('the options of a step', () => {
  it('default to queue default, priority 0, five attempts, no timeout, the default backoff', () => {
    expect(resolveHandlerOptions({}, {})).toEqual({
      queue: 'default',
      priority: 0,
      maxAttempts: 5,
      timeoutMs: null,
      backoff: null,
      retentionMs: null,
    });
  });

  it('of the node win over submit, these over the handler, these over the module (R9)', () => {
    const defaults = {
      queue: 'd',
      priority: 4,
      timeout: '4s',
      retry: { maxAttempts: 4, backoff: { type: 'fixed', delay: '4s' } },
    } as const;
    const handler = { queue: 'h', priority: 3, timeout: '3s', retry: { maxAttempts: 3 } } as const;
    const submit = { queue: 's', priority: 2 } as const;
    expect(resolveHandlerOptions(defaults, {})).toMatchObject({
      queue: 'd',
      priority: 4,
      timeoutMs: 4_000,
      maxAttempts: 4,
    });
    expect(resolveHandlerOptions(defaults, handler)).toMatchObject({
      queue: 'h',
      priority: 3,
      timeoutMs: 3_000,
      maxAttempts: 3,
    });
    expect(resolveHandlerOptions(defaults, handler, [undefined, submit])).toMatchObject({
      queue: 's',
      priority: 2,
      timeoutMs: 3_000,
    });
    expect(resolveHandlerOptions(defaults, handler, [{ queue: 'n', timeout: '1s' }, submit])).toMatchObject({
      queue: 'n',
      priority: 2,
      timeoutMs: 1_000,
    });
  });

  it('of a retry policy are looked up one by one (R9)', () => {
    const defaults = { retry: { maxAttempts: 9, backoff: { type: 'fixed', delay: '4s' } } } as const;
    const resolved = resolveHandlerOptions(defaults, { retry: { maxAttempts: 2 } });
    expect(resolved).toMatchObject({ maxAttempts: 2, backoff: { baseMs: 4_000, factor: 1 } });
  });

  it('may have a backoff function, which the step cannot store (C16)', () => {
    const resolved = resolveHandlerOptions({}, { retry: { backoff: () => '7s' } });
    expect(resolved.backoff).toBeNull();
    expect(resolved.customDelay?.(1, null)).toBe(7_000);
  });

  it.each([
    [{ queue: '' }, 'queue'],
    [{ queue: 'a\u0000b' }, 'queue'],
    [{ queue: 'q'.repeat(513) }, 'queue'],
    [{ priority: 1.5 }, 'priority'],
    [{ priority: 2 ** 31 }, 'priority'],
    [{ priority: '1' }, 'priority'],
    [{ timeout: 0 }, 'timeout'],
    [{ timeout: 'soon' }, 'timeout'],
    [{ retry: { maxAttempts: 0 } }, 'retry.maxAttempts'],
    [{ retry: { maxAttempts: Infinity } }, 'retry.maxAttempts'],
    [{ retention: -1 }, 'retention'],
  ])('like %j are refused and named (R22)', (options, option) => {
    expect(() => resolveHandlerOptions({}, options as never)).toThrow(
      expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION', option }),
    );
    expect(() => resolveHandlerOptions({}, options as never, [], 'OrderSteps.charge')).toThrow(
      `${option} of OrderSteps.charge`,
    );
  });
});
