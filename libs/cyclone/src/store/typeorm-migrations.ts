import type { MigrationInterface, QueryRunner } from 'typeorm';
import { IrreversibleMigrationError, UnsafeIsolationError } from '../model/errors/index.js';
import { checkSchemaName } from './identifier.js';
import { shippedMigrations } from './migration-files.js';
import { CHANGED_SETTINGS } from './migration-script.js';
import { migrateLocked, type MigrationClient } from './migrator.js';
import { rawClientOf } from './raw-client.js';
import type { Query } from './schema-status.js';
import { dataSourceProblem } from './server-check.js';

export interface CycloneMigrationsOptions {
  /** The Postgres schema that holds the `cyclone_*` objects, as in the options of the module. @default 'public' */
  readonly schema?: string;
}

/** TypeORM sorts migrations by the 13 digits at the end of their names. */
const FIRST_TIMESTAMP = 1_700_000_000_000;
/** The functions come after every numbered file. */
const FUNCTIONS_TIMESTAMP = FIRST_TIMESTAMP + 999_999;

/**
 * Cyclone's schema as migrations of TypeORM, for applications that bring their database up with TypeORM's command or its
 * `migrationsRun`: `migrations: [...cycloneMigrations(), CreateOrders1767225600000]`.
 *
 * There is one class for each schema version, whose name stays the same for ever, and one for the functions, whose name changes
 * with them, so that an upgrade of the package always brings a pending migration when it brings something for the database. Each does
 * what `cyclone migrate` does, and nothing where that, a script or another one of them has done it.
 *
 * Their `down` throws IrreversibleMigrationError.
 *
 * @throws InvalidOptionError for a schema name that Postgres does not take
 */
export function cycloneMigrations({
  schema = 'public',
}: CycloneMigrationsOptions = {}): (new () => MigrationInterface)[] {
  checkSchemaName(schema);
  const { files, functionsChecksum } = shippedMigrations();
  const place = schema === 'public' ? '' : `_${schema}_`;
  return [
    ...files.map(({ version, name }) =>
      migrationClass(`Cyclone${titleOf(name)}${place}${FIRST_TIMESTAMP + version}`, schema),
    ),
    migrationClass(`CycloneFunctions_${functionsChecksum.slice(0, 12)}_${place}${FUNCTIONS_TIMESTAMP}`, schema),
  ];
}

/** `0002_some_views` is SomeViews. */
function titleOf(name: string): string {
  const words = name.split('_').slice(1);
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function migrationClass(name: string, schema: string): new () => MigrationInterface {
  return class CycloneMigration implements MigrationInterface {
    readonly name = name;

    async up(queryRunner: QueryRunner): Promise<void> {
      const foreign = dataSourceProblem(queryRunner.connection.options.type);
      if (foreign) throw foreign;
      if (queryRunner.isTransactionActive) return migrateInside(queryRunner, schema);
      // With TypeORM's transaction mode `none` nobody else gives us one.
      await queryRunner.startTransaction('READ COMMITTED');
      try {
        await migrateInside(queryRunner, schema);
        await queryRunner.commitTransaction();
      } catch (error) {
        await queryRunner.rollbackTransaction().catch(() => undefined); // of a lost connection, which rolls back by itself
        throw error;
      }
    }

    async down(): Promise<void> {
      throw new IrreversibleMigrationError(name, schema);
    }
  };
}

async function migrateInside(queryRunner: QueryRunner, schema: string): Promise<void> {
  const client = (await rawClientOf(queryRunner)) as unknown as MigrationClient;
  const query: Query = async (sql, values) => (await client.query(sql, values)).rows;
  const [found] = await query(
    `select current_setting('transaction_isolation') as isolation,
            array(select current_setting(name) from unnest($1::text[]) with ordinality s(name, i) order by i)::text as settings`,
    [CHANGED_SETTINGS],
  );
  if (found?.isolation !== 'read committed') throw new UnsafeIsolationError(String(found?.isolation));
  await migrateLocked(query, shippedMigrations(), { schema, adopt: false, log: () => undefined });
  // The transaction may go on with migrations of the application.
  await query('select set_config(name, value, true) from unnest($1::text[], $2::text[]) s(name, value)', [
    CHANGED_SETTINGS,
    found.settings,
  ]);
}
