import type { ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { findProvider } from './find-provider.js';

/** A DataSource, or why there is none. */
export interface FoundDataSource {
  /** Without one, a stand-in that is never connected: the start is refused, but with all the other problems. */
  readonly dataSource: DataSource;
  readonly problem?: InvalidOptionError;
}

/**
 * The DataSource that a module's options mean: itself, or the one that some module provides under its name, by the tokens of
 * @nestjs/typeorm: the class for the default one, else `<name>DataSource`.
 */
export async function findDataSource(
  given: DataSource | string | undefined,
  modules: ModulesContainer,
): Promise<FoundDataSource> {
  if (typeof given === 'object') return { dataSource: given };
  const token = given === undefined || given === 'default' ? DataSource : `${given}DataSource`;
  const found = await findProvider<DataSource>(modules, token);
  if (found) return { dataSource: found };
  const problem = new InvalidOptionError(
    'dataSource',
    given === undefined
      ? 'is not given, and no module provides a default DataSource. Import TypeOrmModule.forRoot(…), provide the class DataSource yourself, or pass a DataSource.'
      : `names "${given}", but no module provides "${String(token)}". Import TypeOrmModule.forRoot({ name: '${given}', … }), or pass the DataSource itself.`,
  );
  return { dataSource: new DataSource({ type: 'postgres' }), problem };
}
