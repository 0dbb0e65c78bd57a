import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateOrders1700000000000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE orders (
        id         text PRIMARY KEY,
        email      text NOT NULL,
        run_id     bigint NOT NULL,
        placed_at  timestamptz NOT NULL DEFAULT now()
      )`);

    // No unique key on (run_id, node), on purpose: it would hide a step that is executed twice behind an error, and
    // "npm run demo" is here to show that there is none to hide. In your own application, do add one.
    await queryRunner.query(`
      CREATE TABLE ledger (
        id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        order_id   text NOT NULL,
        run_id     bigint NOT NULL,
        node       text NOT NULL,
        amount     numeric NOT NULL,
        charged_at timestamptz NOT NULL DEFAULT now()
      )`);
    await queryRunner.query(`CREATE INDEX ledger_order ON ledger (order_id)`);

    await queryRunner.query(`
      CREATE TABLE stock_movements (
        id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        order_id   text NOT NULL,
        line       int NOT NULL,
        product_id text NOT NULL,
        quantity   int NOT NULL
      )`);
    await queryRunner.query(`CREATE INDEX stock_movements_order ON stock_movements (order_id)`);

    // Stands for a mail server, which knows each message by its idempotency key and sends it once.
    await queryRunner.query(`
      CREATE TABLE outbox (
        idempotency_key text PRIMARY KEY,
        recipient       text NOT NULL,
        subject         text NOT NULL,
        body            text NOT NULL,
        sent_at         timestamptz NOT NULL DEFAULT now()
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE outbox, stock_movements, ledger, orders`);
  }
}
