export { CycloneError } from './cyclone-error.js';
export * from './connection-errors.js';
export * from './graph-errors.js';
export * from './handler-errors.js';
export * from './run-errors.js';
export * from './setup-errors.js';
