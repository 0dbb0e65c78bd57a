import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Settings } from '../settings.js';

/** Stands for a payment service on the network: it takes a while, and knows a payment by its idempotency key. */
@Injectable()
export class CardTerminal {
  constructor(private readonly settings: Settings) {}

  /** Asked twice with one key, it authorizes once and gives the same answer. */
  async authorize(amount: string, idempotencyKey: string, signal: AbortSignal): Promise<{ authorization: string }> {
    await delay(this.settings.cardLatency, undefined, { signal });
    return { authorization: `auth:${idempotencyKey}:${amount}` };
  }
}
