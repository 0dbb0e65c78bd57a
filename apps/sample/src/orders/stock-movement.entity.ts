import { Column, Entity, PrimaryGeneratedColumn } from 'typeorm';

/** Goods that left the stock: one row for each line of an order. */
@Entity('stock_movements')
export class StockMovement {
  @PrimaryGeneratedColumn('identity', { type: 'bigint' })
  id!: string;

  @Column('text', { name: 'order_id' })
  orderId!: string;

  /** From 1. */
  @Column('int')
  line!: number;

  @Column('text', { name: 'product_id' })
  productId!: string;

  @Column('int')
  quantity!: number;
}
