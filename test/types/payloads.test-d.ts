// Compiled, never run: which outputs JSON keeps, and which it would lose (F5, F6).
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { firstValueFrom, of, type Observable } from 'rxjs';
import {
  Action,
  Step,
  stepsOf,
  type ActionHandle,
  type NotStorable,
  type StepHandle,
  type Stored,
} from 'nestjs-cyclone';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(holds?: T): void => void holds;

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
interface Tree {
  readonly value: Date;
  readonly children: readonly Tree[];
}
interface Message {
  name: string;
  message: string;
}
type Cents = number & { readonly brand: 'cents' };
class Money {
  private readonly currency = 'usd';
  constructor(readonly cents: Cents) {}
  show(): string {
    return `${this.cents} ${this.currency}`;
  }
}
interface Result {
  readonly ok: boolean;
  readonly error?: Error;
}

/** What may be returned. */
@Injectable()
class Kept {
  @Step() json(i: Json): Json {
    return i;
  }
  @Step() tree(i: string): Tree {
    return { value: new Date(i), children: [] };
  }
  @Step() async optional(i: string): Promise<{ at?: Date; note?: string | null } | undefined> {
    return i === '' ? undefined : {};
  }
  @Step() message(i: Message): Message[] {
    return [i];
  }
  @Step() instance(i: number): Money {
    return new Money(i as Cents);
  }
  @Step() tuple(i: string): readonly [string, number] {
    return [i, 1];
  }
  @Step() anything(i: string): Record<string, unknown> {
    return { i };
  }
  @Step() url(i: string): { at: URL; raw: Buffer } {
    return { at: new URL(i), raw: Buffer.from(i) };
  }
  @Step() observed(i: string): Observable<{ id: string }> {
    return of({ id: i });
  }
  @Step() async observedLater(i: string): Promise<Observable<number>> {
    return of(i.length);
  }
  @Action() told(i: string): Observable<void> {
    return of(void i);
  }
}
const kept = stepsOf(Kept);
check<Equal<typeof kept.observed, StepHandle<string, { id: string }>>>();
check<Equal<typeof kept.observedLater, StepHandle<string, number>>>();
check<Equal<typeof kept.told, ActionHandle<string>>>();
check<Equal<typeof kept.json, StepHandle<Json, Json>>>();
check<Equal<Stored<Json>, Json>>();
check<Equal<Stored<Tree>['children'][0]['value'], string>>();
check<Equal<Stored<readonly string[]>, string[]>>();
check<Equal<Stored<[string, Date]>, [string, string]>>();
check<Equal<Stored<{ error: Error }>, { error: NotStorable<Error> }>>();
check<Equal<Stored<Message>, Message>>();

/** What must not be. */
@Injectable()
class Lost {
  // @ts-expect-error an Error, however deep
  @Step() async error(i: string): Promise<{ results: Result[] }> {
    return { results: [{ ok: false, error: new Error(i) }] };
  }
  // @ts-expect-error an Error in a union
  @Step() union(i: string): string | TypeError {
    return i === '' ? new TypeError() : i;
  }
  // @ts-expect-error a RegExp
  @Step() regExp(i: string): { pattern: RegExp } {
    return { pattern: new RegExp(i) };
  }
  // @ts-expect-error a Map inside
  @Step() map(i: string): { counts: Map<string, number> } {
    return { counts: new Map([[i, 1]]) };
  }
  // @ts-expect-error a promise inside
  @Step() promise(i: string): { later: Promise<string> } {
    return { later: Promise.resolve(i) };
  }
  // @ts-expect-error a typed array
  @Step() bytes(i: string): Uint8Array {
    return new TextEncoder().encode(i);
  }
  // @ts-expect-error an ArrayBuffer
  @Step() buffer(i: number): { data: ArrayBuffer } {
    return { data: new ArrayBuffer(i) };
  }
  // @ts-expect-error a Blob
  @Step() blob(i: string): Blob {
    return new Blob([i]);
  }
  // @ts-expect-error the Response of a fetch
  @Step() async response(i: string): Promise<Response> {
    return fetch(i);
  }
  // @ts-expect-error Headers
  @Step() headers(i: string): { headers: Headers } {
    return { headers: new Headers({ i }) };
  }
  // @ts-expect-error search parameters
  @Step() search(i: string): URLSearchParams {
    return new URLSearchParams(i);
  }
  // @ts-expect-error a stream
  @Step() stream(i: string): Readable {
    return Readable.from([i]);
  }
  // @ts-expect-error a number format
  @Step() format(i: string): { format: Intl.NumberFormat } {
    return { format: new Intl.NumberFormat(i) };
  }
  // @ts-expect-error an Observable inside
  @Step() observable(i: string): { later: Observable<string> } {
    return { later: of(i) };
  }
  // @ts-expect-error the values of a Map are no list
  @Step() values(i: string): MapIterator<string> {
    return new Map([[i, i]]).values();
  }
  // @ts-expect-error a generator
  @Step() *generate(i: string): Generator<string> {
    yield i;
  }
  // @ts-expect-error an async generator
  @Step() async *stream2(i: string): AsyncGenerator<string> {
    yield i;
  }
  // @ts-expect-error an async generator has nothing to do with an action either
  @Action() async *act(i: string): AsyncGenerator<string> {
    yield i;
  }
  // @ts-expect-error an Observable with values is an output
  @Action() observed(i: string): Observable<string> {
    return of(i);
  }
  // @ts-expect-error an input that holds an Error does not survive JSON
  @Action() input(i: { error: Error }): void {
    void i;
  }
  @Step() async awaited(i: string): Promise<string> {
    return firstValueFrom(of(i));
  }
}

void Lost;
