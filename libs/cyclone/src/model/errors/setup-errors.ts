import { CycloneError, identify } from './cyclone-error.js';

/** No handler or workflow of this name is known here. */
export class UnknownHandlerError extends CycloneError {
  static override readonly code = 'CYCLONE_UNKNOWN_HANDLER';
  static {
    identify(this, 'UnknownHandlerError');
  }
  constructor(
    /** The kind, the workflow, or `Class.method`. */
    readonly handler: string,
    /** What to do; the default fits a kind that no provider serves. */
    remedy = 'Decorate a provider method with @Step() or @Action(), and import its module into the application.',
  ) {
    super(`"${handler}" is not a known handler. ${remedy}`);
  }
}

/** Two handlers of one application claim one kind, or two workflows one name (R22). */
export class DuplicateHandlerError extends CycloneError {
  static override readonly code = 'CYCLONE_DUPLICATE_HANDLER';
  static {
    identify(this, 'DuplicateHandlerError');
  }
  constructor(
    readonly kind: string,
    /** Every place that claims it, as `Class.method`. */
    readonly owners: readonly string[],
  ) {
    super(`"${kind}" is declared by ${owners.join(' and ')}. Give one of them another name with the option \`name\`.`);
  }
}

/** An option that makes no sense; names the option. */
export class InvalidOptionError extends CycloneError {
  static override readonly code = 'CYCLONE_INVALID_OPTION';
  static {
    identify(this, 'InvalidOptionError');
  }
  constructor(
    /** The path of the option, for example `retry.maxAttempts`. */
    readonly option: string,
    /** What it must be. */
    readonly problem: string,
    options?: ErrorOptions,
  ) {
    super(`The option ${option} ${problem}`, options);
  }
}

/** The database's schema and this version of the library do not fit together (R22). */
export class SchemaVersionError extends CycloneError {
  static override readonly code = 'CYCLONE_SCHEMA_VERSION';
  static {
    identify(this, 'SchemaVersionError');
  }
  constructor(
    /** The version in the database; null when the tables are missing, or when nobody knows their version. */
    readonly found: number | null,
    readonly required: number,
    /** What to do. */
    readonly remedy: string,
    /** What is wrong, where it is neither that the tables are missing nor that they have another version. */
    readonly situation: string = found === null
      ? `The Cyclone tables are missing; this library needs schema version ${required}.`
      : `The Cyclone schema has version ${found}, this library needs ${required}.`,
  ) {
    super(`${situation} ${remedy}`);
  }
}

/** The role of the connection lacks rights on the tables and functions of Cyclone. */
export class MissingRightsError extends CycloneError {
  static override readonly code = 'CYCLONE_MISSING_RIGHTS';
  static {
    identify(this, 'MissingRightsError');
  }
  readonly situation: string;
  /** What to do. */
  readonly remedy: string;
  constructor(
    readonly role: string,
    readonly schema: string,
    /** The statements that give the rights, for the owner of the schema. */
    readonly grants: readonly string[],
    options?: ErrorOptions,
  ) {
    const situation = `The role ${role} lacks rights that Cyclone needs in the schema "${schema}".`;
    const remedy =
      `Run as the owner of the schema: ${grants.join(' ')} ` +
      `\`npx nestjs-cyclone migrate sql --roles\` prints all rights of an owner, a worker and a viewer.`;
    super(`${situation} ${remedy}`, options);
    this.situation = situation;
    this.remedy = remedy;
  }
}

/** A migration of Cyclone was asked to go back. Nothing was changed. */
export class IrreversibleMigrationError extends CycloneError {
  static override readonly code = 'CYCLONE_IRREVERSIBLE_MIGRATION';
  static {
    identify(this, 'IrreversibleMigrationError');
  }
  constructor(
    /** The name of the migration, as TypeORM knows it. */
    readonly migration: string,
    readonly schema: string,
  ) {
    super(
      `${migration} cannot be reverted: the tables of Cyclone in the schema "${schema}" hold the runs, and going back would delete them. ` +
        `An older library works with a newer schema that says so, so a rollback of the application needs none. ` +
        `To revert what came before it, step over it with migration:revert --fake; to remove Cyclone, drop its objects yourself.`,
    );
  }
}

/** The server or the role starts transactions above READ COMMITTED, which would strand runs (R22). */
export class UnsafeIsolationError extends CycloneError {
  static override readonly code = 'CYCLONE_UNSAFE_ISOLATION';
  static {
    identify(this, 'UnsafeIsolationError');
  }
  constructor(readonly isolation: string) {
    super(
      `default_transaction_isolation is "${isolation}", and Cyclone needs "read committed": under a stricter level two steps ` +
        `that complete together do not see each other and their run stops for ever. ` +
        `Run ALTER ROLE … SET default_transaction_isolation = 'read committed' for the role of this connection.`,
    );
  }
}
