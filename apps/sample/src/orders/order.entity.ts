import { Column, CreateDateColumn, Entity, PrimaryColumn } from 'typeorm';

/** An order that was accepted. What became of it is in its run. */
@Entity('orders')
export class Order {
  @PrimaryColumn('text')
  id!: string;

  @Column('text')
  email!: string;

  /** A bigint: decimal digits in TypeScript. */
  @Column('bigint', { name: 'run_id' })
  runId!: string;

  @CreateDateColumn({ type: 'timestamptz', name: 'placed_at' })
  placedAt!: Date;
}
