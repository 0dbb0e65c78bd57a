import type { MigrationInterface, QueryRunner } from 'typeorm';

export class CreateCardTerminal1700000001000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE card_terminal (
        name  text PRIMARY KEY,
        is_on boolean NOT NULL
      )`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`DROP TABLE card_terminal`);
  }
}
