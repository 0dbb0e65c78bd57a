import { Inject } from '@nestjs/common';
import { getWorkflowClientToken } from '../cyclone.tokens.js';

/**
 * Injects the WorkflowClient of a Cyclone.
 * @param name the option `name` of its CycloneModule. @default the unnamed one
 */
export const InjectCyclone = (name?: string): PropertyDecorator & ParameterDecorator =>
  Inject(getWorkflowClientToken(name));
