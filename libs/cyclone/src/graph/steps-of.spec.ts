import { inspect } from 'node:util';
import { Action } from '../nest/decorators/action.decorator.js';
import { Step } from '../nest/decorators/step.decorator.js';
import { metadataOf } from './handle.js';
import { getHandlerMetadata, listHandlers } from './metadata.js';
import { stepsOf } from './steps-of.js';

/** A decorator of somebody else's that replaces the method, as tracing libraries do. */
function Traced(_target: object, _key: string, descriptor: PropertyDescriptor): void {
  const original = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]): unknown {
    return original.apply(this, args);
  };
}

let fired = 0;

class Base {
  @Step({ name: 'base_check' }) check(id: string): boolean {
    return id !== '';
  }
  @Step() charge(id: string): string {
    return id;
  }
}

class Orders extends Base {
  @Step({ queue: 'orders' }) @Traced validate(id: string): string {
    return id;
  }
  @Traced @Action({ name: 'send_receipt' }) async send(id: string): Promise<void> {
    void id;
  }
  override charge(id: string): string {
    return `overridden ${id}`;
  }
  undecorated(id: string): string {
    return id;
  }
  get connection(): string {
    fired++;
    return 'opened';
  }
  // oxlint-disable-next-line unicorn/no-thenable -- the trap
  then(): string {
    return 'a trap for await';
  }
  toJSON(): string {
    return 'a trap for JSON';
  }
  [inspect.custom](): string {
    return 'a trap for the console';
  }
  override toString(): string {
    return 'a trap for templates';
  }
}

const handles = stepsOf(Orders);
const anyHandles = handles as unknown as Record<string, unknown>;

describe('stepsOf', () => {
  it('gives the handles of decorated methods, by their names or their methods, inherited ones included (C18)', () => {
    expect(handles.validate).toEqual({ kind: 'validate' });
    expect(handles.send).toEqual({ kind: 'send_receipt', output: 'none' });
    expect(handles.check).toEqual({ kind: 'base_check' });
    expect(Object.keys(handles).toSorted()).toEqual(['check', 'send', 'validate']);
  });

  it('sees through decorators that replace the function, on either side (C18)', () => {
    expect(metadataOf(handles.validate)).toMatchObject({
      kind: 'validate',
      nodeType: 'step',
      options: { queue: 'orders' },
    });
    expect(metadataOf(handles.send)).toMatchObject({ kind: 'send_receipt', nodeType: 'action', owner: 'Orders.send' });
  });

  it('throws for a method that is not decorated, and says what to do', () => {
    expect(() => anyHandles['undecorated']).toThrow(
      expect.objectContaining({
        code: 'CYCLONE_UNKNOWN_HANDLER',
        message: expect.stringContaining('"Orders.undecorated"'),
      }),
    );
  });

  it('throws for a method that overrides a handler without being decorated again', () => {
    expect(() => anyHandles['charge']).toThrow('It overrides Base.charge and must be decorated again');
    expect(stepsOf(Base).charge).toEqual({ kind: 'charge' });
  });

  it('is undefined for what the class does not have', () => expect(anyHandles['nothing']).toBeUndefined());

  it('fires no getter, and throws for an accessor as for a method (C18)', () => {
    expect(() => anyHandles['connection']).toThrow('Orders.connection');
    expect(fired).toBe(0);
  });

  it('survives await, JSON, templates and the console (C18)', async () => {
    expect(await Promise.resolve(handles)).toBe(handles);
    expect(JSON.parse(JSON.stringify(handles))).toMatchObject({ validate: { kind: 'validate' } });
    expect(`${handles as unknown as object}`).toBe('[object Object]');
    expect(inspect(handles)).toContain('send_receipt');
    expect(Reflect.get(handles, Symbol.iterator)).toBeUndefined();
  });

  it('makes them once for each class, because define asks on every submit', () => {
    expect(stepsOf(Orders)).toBe(handles);
    expect(stepsOf(Base)).not.toBe(handles);
  });

  it('refuses what is no class, as an import cycle leaves it', () => {
    expect(() => stepsOf(undefined as never)).toThrow(expect.objectContaining({ code: 'CYCLONE_INVALID_OPTION' }));
  });
});

describe('the metadata of handlers', () => {
  it('tells where an override lost it', () => {
    expect(getHandlerMetadata(Orders.prototype, 'charge')).toMatchObject({
      metadata: { owner: 'Base.charge' },
      overriddenBy: 'Orders',
    });
    expect(getHandlerMetadata(Orders.prototype, 'check')?.overriddenBy).toBeUndefined();
    expect(getHandlerMetadata(Orders.prototype, 'undecorated')).toBeUndefined();
    class Again extends Orders {
      @Step() override charge(id: string): string {
        return id;
      }
    }
    expect(getHandlerMetadata(Again.prototype, 'charge')).toEqual({
      metadata: expect.objectContaining({ owner: 'Again.charge' }),
    });
  });

  it('lists every decorated method, for the start of the application', () => {
    expect([...listHandlers(Orders.prototype).keys()].toSorted()).toEqual(['charge', 'check', 'send', 'validate']);
  });

  it('keeps a method that is called by a symbol apart: it has no kind until it is named (R22)', () => {
    const key = Symbol('hidden');
    class Hidden {
      @Step() [key](id: string): string {
        return id;
      }
    }
    expect(getHandlerMetadata(Hidden.prototype, key)?.metadata.kind).toBe('');
  });
});
