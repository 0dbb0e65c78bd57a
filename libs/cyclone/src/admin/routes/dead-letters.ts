import type { DeadLetterFilter } from '../../client/operator-client.js';
import { pageOf } from '../answers/run.js';
import { deepSnake, snake } from '../json.js';
import { listOf, object, ref } from '../schema.js';
import { route } from '../route.js';
import { DeadLetterGroupsQuery, DeadLettersQuery } from './dto.js';

export const deadLetterRoutes = [
  route<DeadLetterGroupsQuery>({
    name: 'listDeadLetterGroups',
    method: 'GET',
    path: '/dlq/groups',
    permission: 'read',
    summary: 'Dead letters by kind, error kind and fingerprint, the largest group first.',
    query: DeadLetterGroupsQuery,
    answer: object({ data: listOf(ref('DeadLetterGroup')) }),
    async handle({ reader, query: { kind, since } }) {
      const groups = await reader.dlqGroups({
        ...(kind === undefined ? {} : { kind }),
        ...(since === undefined ? {} : { since }),
      });
      return { data: groups.map((group) => deepSnake(group)) };
    },
  }),
  route<DeadLettersQuery>({
    name: 'listDeadLetters',
    method: 'GET',
    path: '/dlq/steps',
    permission: 'read',
    summary: 'Discarded steps, the newest first, page by page.',
    query: DeadLettersQuery,
    answer: pageOf('DeadLetter'),
    async handle({ reader, query }) {
      const { limit, cursor } = query;
      const page = await reader.exhaustedPage({
        ...deadLetterFilter(query),
        limit,
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { data: page.steps.map((step) => snake(step)), next_cursor: page.next };
    },
  }),
];

/** The filter under the names of the API: there `reason` says why somebody does something. */
export function deadLetterFilter({
  kind,
  error_kind,
  fingerprint,
  since,
}: Pick<DeadLettersQuery, 'kind' | 'error_kind' | 'fingerprint' | 'since'>): DeadLetterFilter {
  return {
    ...(kind === undefined ? {} : { kind }),
    ...(error_kind === undefined ? {} : { reason: error_kind }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(since === undefined ? {} : { since }),
  };
}
