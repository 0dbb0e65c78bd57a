import { checkNode } from '../../client/operator-options.js';
import { checkRunId } from '../../client/run-id.js';
import { NodeNotFoundError } from '../../model/errors/run-errors.js';
import type { PayloadPlace } from '../../model/payload-codec.js';
import type { StepRecord } from '../../store/run-store.js';
import type { AdminService } from '../admin.service.js';
import { pageOf } from '../answers/run.js';
import { attemptJson, explanationJson, stepJson } from '../answers/step.js';
import { listOf, object, ref } from '../schema.js';
import { route, type Call } from '../route.js';
import { AttemptsQuery, PayloadQuery, StepsQuery } from './dto.js';

/** A longer payload is only shown when it is asked for. */
const SHORT_PAYLOAD_BYTES = 64 * 1_024;

export const stepRoutes = [
  route<StepsQuery>({
    name: 'listSteps',
    method: 'GET',
    path: '/runs/:id/steps',
    permission: 'read',
    summary: 'The steps of a run by name, without payloads.',
    query: StepsQuery,
    answer: pageOf('Step'),
    async handle({ reader, id, query: { state, parent_node, limit, cursor } }) {
      const page = await reader.stepsPage(id, {
        limit,
        ...(state === undefined ? {} : { states: state }),
        ...(parent_node === undefined ? {} : { parentNode: parent_node }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { data: page.steps.map(stepJson), next_cursor: page.next };
    },
  }),
  route({
    name: 'getStep',
    method: 'GET',
    path: '/runs/:id/steps/:node',
    permission: 'read',
    summary: 'A step, without payloads.',
    answer: ref('Step'),
    handle: async (call) => stepJson(await readStep(call, false)),
  }),
  route<PayloadQuery>({
    name: 'getStepPayload',
    method: 'GET',
    path: '/runs/:id/steps/:node/payload',
    permission: 'payload:read',
    summary: 'Input, output and stack of a step, as the redact hook of the application lets them be seen.',
    query: PayloadQuery,
    answer: ref('StepPayload'),
    async handle(call) {
      const step = await readStep(call, true);
      const show = (part: PayloadPlace['part']): Promise<object> =>
        payload(call.service, step[part], { runId: step.run_id, node: step.node, part }, call.query.full === 'true');
      return {
        run_id: step.run_id,
        node: step.node,
        input: await show('input'),
        output: await show('output'),
        // A stack quotes what it likes, and no hook knows where.
        panic_stack: call.service.options.redact ? null : (step['panic_stack'] ?? null),
      };
    },
  }),
  route<AttemptsQuery>({
    name: 'listAttempts',
    method: 'GET',
    path: '/runs/:id/steps/:node/attempts',
    permission: 'read',
    summary: 'Executions of a step that did not complete it, the latest first.',
    query: AttemptsQuery,
    answer: object({ data: listOf(ref('Attempt')) }),
    async handle(call) {
      const { run_id, node } = await readStep(call, false);
      const attempts = await call.service.read(`the attempts of node "${node}" of run ${run_id}`, (session) =>
        call.service.store.attempts(session, run_id, node, call.query.limit),
      );
      return { data: attempts.map(attemptJson) };
    },
  }),
  route({
    name: 'explainStep',
    method: 'GET',
    path: '/runs/:id/steps/:node/explain',
    permission: 'read',
    summary: 'Why a step is not running, and what to do about it.',
    answer: ref('Explanation'),
    handle: async ({ reader, id, node }) => explanationJson(await reader.explain(id, node)),
  }),
];

async function readStep({ service, reader, id, node }: Call, payloads: boolean): Promise<StepRecord> {
  const runId = checkRunId(id);
  const name = checkNode(runId, node);
  const step = await service.read(`node "${name}" of run ${runId}`, (session) =>
    service.store.step(session, runId, name, { payloads }),
  );
  if (step) return step;
  await reader.run(runId); // says so when it is the run that is missing
  throw new NodeNotFoundError(runId, name);
}

async function payload(service: AdminService, stored: unknown, place: PayloadPlace, full: boolean): Promise<object> {
  const shown = await service.redacted(stored ?? null, place);
  if (!shown) return { value: null, bytes: null, omitted: true };
  const bytes = Buffer.byteLength(JSON.stringify(shown.value));
  const omitted = bytes > SHORT_PAYLOAD_BYTES && !full;
  return { value: omitted ? null : shown.value, bytes, omitted };
}
