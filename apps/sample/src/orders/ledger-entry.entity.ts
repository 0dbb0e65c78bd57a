import { Column, CreateDateColumn, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** Money that was charged. */
@Entity('ledger')
export class LedgerEntry {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' })
  id!: string;

  @Column('text', { name: 'order_id' })
  orderId!: string;

  @Column('bigint', { name: 'run_id' })
  runId!: string;

  @Column('text')
  node!: string;

  /** A numeric: an exact decimal in PostgreSQL, its digits in TypeScript. */
  @Column('numeric')
  amount!: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'charged_at' })
  chargedAt!: Date;
}
