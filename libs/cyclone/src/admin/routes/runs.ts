import { RunNotFoundError } from '../../model/errors/run-errors.js';
import type { RunsFilter } from '../../client/operator-client.js';
import { FAILURE, RUN_PAGE, runJson } from '../answers/run.js';
import { COUNT } from '../answers/operations.js';
import { nullable, object, ref } from '../schema.js';
import { route } from '../route.js';
import { RunsFilterQuery, RunsQuery } from './dto.js';

export const runRoutes = [
  route<RunsQuery>({
    name: 'listRuns',
    method: 'GET',
    path: '/runs',
    permission: 'read',
    summary: 'Runs, the newest first, page by page.',
    query: RunsQuery,
    answer: RUN_PAGE,
    async handle({ reader, query }) {
      const { direction, limit, cursor } = query;
      const page = await reader.runs({
        ...filterOf(query),
        direction,
        limit,
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { data: page.runs.map(runJson), next_cursor: page.next, previous_cursor: page.previous };
    },
  }),
  route<RunsFilterQuery>({
    name: 'countRuns',
    method: 'GET',
    path: '/runs/count',
    permission: 'read',
    summary: 'How many runs match, counted up to 10,000.',
    query: RunsFilterQuery,
    answer: COUNT,
    handle: ({ reader, query }) => reader.countRuns(filterOf(query)),
  }),
  route({
    name: 'getRun',
    method: 'GET',
    path: '/runs/:id',
    permission: 'read',
    summary: 'A run, and what failed it.',
    answer: object({ run: ref('Run'), failure: nullable(FAILURE) }),
    async handle({ service, reader, id }) {
      const run = await reader.run(id);
      if (run.state !== 'failed') return { run: runJson(run), failure: null };
      const outcome = await service.read(`the failure of run ${id}`, (session) =>
        service.engine.runs.runOutcome(session, id),
      );
      if (!outcome) throw new RunNotFoundError(id); // purged since
      const { failedNode: node, failedKind: kind, error, errorKind: error_kind } = outcome;
      return { run: runJson(run), failure: { node, kind, error, error_kind } };
    },
  }),
];

function filterOf(query: RunsFilterQuery): RunsFilter {
  const { state, workflow, tag, key, parent, created_from, created_to } = query;
  return {
    ...(state === undefined ? {} : { states: state }),
    ...(workflow === undefined ? {} : { workflows: workflow }),
    ...(tag === undefined ? {} : { tags: Object.fromEntries(tag.map(nameAndValue)) as Record<string, string> }),
    ...(key === undefined ? {} : { onceKey: key }),
    ...(parent === undefined ? {} : { parent }),
    ...(created_from === undefined ? {} : { createdFrom: created_from }),
    ...(created_to === undefined ? {} : { createdTo: created_to }),
  };
}

function nameAndValue(tag: string): [string, string] {
  const colon = tag.indexOf(':');
  return [tag.slice(0, colon), tag.slice(colon + 1)];
}
