import type { InjectionToken, Type } from '@nestjs/common';
import { OperatorClient } from '../client/operator-client.js';
import { WorkflowClient } from '../client/workflow-client.js';
import { Engine } from '../store/engine.js';
import { WorkerPool } from './worker-pool.js';

/**
 * What is provided under a class for the unnamed Cyclone has a text for a named one. The text is written out: in a minified bundle two
 * classes may have one name (R40).
 */
const tokenOf =
  (part: string, type: Type) =>
  (name?: string): InjectionToken =>
    name === undefined ? type : `${name}Cyclone${part}`;

/** The token of a Cyclone's WorkflowClient: the class itself for the unnamed one. */
export const getWorkflowClientToken = tokenOf('WorkflowClient', WorkflowClient);

/** The token of a Cyclone's OperatorClient: the class itself for the unnamed one. */
export const getOperatorClientToken = tokenOf('OperatorClient', OperatorClient);

/** The token of a Cyclone's WorkerPool: the class itself for the unnamed one. */
export const getWorkerPoolToken = tokenOf('WorkerPool', WorkerPool);

/** @internal The token of a Cyclone's engine, for the parts of this package. */
export const getEngineToken = tokenOf('Engine', Engine);
