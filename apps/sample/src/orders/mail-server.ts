import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { OutboxMail } from './outbox-mail.entity.js';

/** Stands for a mail service. Its table is not in reach of our transactions, as if it were on another machine. */
@Injectable()
export class MailServer {
  constructor(@InjectRepository(OutboxMail) private readonly outbox: Repository<OutboxMail>) {}

  /** Asked twice with one key, it sends one message. */
  async send(mail: Pick<OutboxMail, 'idempotencyKey' | 'recipient' | 'subject' | 'body'>): Promise<void> {
    await this.outbox.createQueryBuilder().insert().values(mail).orIgnore().execute();
  }
}
