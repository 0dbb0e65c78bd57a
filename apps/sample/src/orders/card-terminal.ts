import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Settings } from '../settings.js';
import { CardTerminalSwitch } from './card-terminal-switch.entity.js';

/** Stands for a payment service on the network: it takes a while, and knows a payment by its idempotency key. */
@Injectable()
export class CardTerminal {
  constructor(
    private readonly settings: Settings,
    @InjectRepository(CardTerminalSwitch) private readonly switches: Repository<CardTerminalSwitch>,
  ) {}

  /**
   * Asked twice with one key, it authorizes once and gives the same answer. Only a refusal is not remembered: the card may be good
   * the next time.
   */
  async authorize(
    amount: string,
    idempotencyKey: string,
    signal: AbortSignal,
  ): Promise<{ authorization: string | null }> {
    await delay(this.settings.cardLatency, undefined, { signal });
    return { authorization: (await this.declines()) ? null : `auth:${idempotencyKey}:${amount}` };
  }

  /** Whether it declines every card, until somebody says otherwise. All processes ask the same terminal. */
  async declines(): Promise<boolean> {
    return (await this.switches.findOneBy({ name: 'declines' }))?.on ?? false;
  }

  async setDeclines(on: boolean): Promise<void> {
    await this.switches.save({ name: 'declines', on });
  }
}
