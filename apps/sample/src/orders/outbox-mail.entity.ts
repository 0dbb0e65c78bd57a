import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** A message that the mail server sent. */
@Entity('outbox')
export class OutboxMail {
  @PrimaryColumn('text', { name: 'idempotency_key' })
  idempotencyKey!: string;

  @Column('text')
  recipient!: string;

  @Column('text')
  subject!: string;

  @Column('text')
  body!: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'sent_at' })
  sentAt!: Date;
}
