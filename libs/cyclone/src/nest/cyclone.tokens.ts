import type { InjectionToken } from '@nestjs/common';
import { OperatorClient } from '../client/operator-client.js';
import { WorkflowClient } from '../client/workflow-client.js';
import { Engine } from '../store/engine.js';
import { WorkerPool } from './worker-pool.js';

/** What the token of a part of the unnamed Cyclone is a class for, is a text for a named one. */
const tokenOf = (part: InjectionToken & { readonly name: string }, name: string | undefined): InjectionToken =>
  name === undefined ? part : `${name}Cyclone${part.name}`;

/** The token of a Cyclone's WorkflowClient: the class itself for the unnamed one. */
export const getWorkflowClientToken = (name?: string): InjectionToken => tokenOf(WorkflowClient, name);

/** The token of a Cyclone's OperatorClient: the class itself for the unnamed one. */
export const getOperatorClientToken = (name?: string): InjectionToken => tokenOf(OperatorClient, name);

/** The token of a Cyclone's WorkerPool: the class itself for the unnamed one. */
export const getWorkerPoolToken = (name?: string): InjectionToken => tokenOf(WorkerPool, name);

/** @internal The token of a Cyclone's engine, for the parts of this package. */
export const getEngineToken = (name?: string): InjectionToken => tokenOf(Engine, name);
