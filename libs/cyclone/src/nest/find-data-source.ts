import type { ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { InvalidOptionError } from '../model/errors/setup-errors.js';
import { findProvider } from './find-provider.js';

/**
 * The DataSource that a module's options mean: itself, or the one that some module provides under its name, by the tokens of
 * @nestjs/typeorm: the class for the default one, else `<name>DataSource`.
 * @throws InvalidOptionError when no module provides it
 */
export async function findDataSource(
  given: DataSource | string | undefined,
  modules: ModulesContainer,
): Promise<DataSource> {
  if (typeof given === 'object') return given;
  const token = given === undefined || given === 'default' ? DataSource : `${given}DataSource`;
  const found = await findProvider<DataSource>(modules, token);
  if (found) return found;
  throw new InvalidOptionError(
    'dataSource',
    given === undefined
      ? 'is not given, and no module provides a default DataSource. Import TypeOrmModule.forRoot(…), provide the class DataSource yourself, or pass a DataSource.'
      : `names "${given}", but no module provides "${String(token)}". Import TypeOrmModule.forRoot({ name: '${given}', … }), or pass the DataSource itself.`,
  );
}
