import { Cursors } from '../../client/operator-cursor.js';
import { PACKAGE_VERSION } from '../../model/package-version.js';
import { queryOf } from '../../store/doctor/finding.js';
import { readSchemaStatus } from '../../store/schema-status.js';
import { pageOf } from '../answers/run.js';
import { deepSnake, snake } from '../json.js';
import { openApi } from '../open-api.js';
import { PERMISSIONS } from '../permissions.js';
import { flag, integer, listOf, mapOf, anything, nullable, object, oneOf, ref, text, time } from '../schema.js';
import { route, type AnyRoute } from '../route.js';
import { aRunId } from '../field.js';
import { RefusedRequest } from '../problem.js';
import { AuditQuery, StrandedQuery } from './dto.js';

/** Runs that one page of the search for stranded ones looks at. */
const STRANDED_SCAN = 20_000;

/** @param all every route of the API, for its description of itself */
export const overviewRoutes = (all: () => readonly AnyRoute[]): AnyRoute[] => [
  route({
    name: 'getMeta',
    method: 'GET',
    path: '/meta',
    permission: 'read',
    summary: 'What this is, and what the caller may do with it.',
    answer: object({
      version: text,
      schema: text,
      schema_version: nullable(integer),
      required_schema_version: integer,
      name: nullable(text),
      read_only: flag,
      actor: text,
      permissions: listOf(oneOf(PERMISSIONS)),
      features: listOf(text),
      now: time,
    }),
    async handle({ service, caller }) {
      const { options, schema } = service;
      const { status, now } = await service.read('the schema version', async (session) => ({
        status: await readSchemaStatus(queryOf(session), schema),
        now: await service.store.now(session),
      }));
      return {
        version: PACKAGE_VERSION,
        schema,
        schema_version: status.version,
        required_schema_version: status.required,
        name: options.name ?? null,
        read_only: options.readOnly,
        actor: caller.actor,
        permissions: caller.permissions,
        features: all().map(({ name }) => name),
        now,
      };
    },
  }),
  route({
    name: 'getOpenApi',
    method: 'GET',
    path: '/openapi.json',
    permission: 'read',
    summary: 'This description.',
    answer: mapOf(anything),
    handle: async ({ base }) => openApi(all(), base),
  }),
  route({
    name: 'getStats',
    method: 'GET',
    path: '/stats',
    permission: 'read',
    summary: 'How everything stands: exact for what is open, capped for what is over.',
    answer: ref('Stats'),
    handle: async ({ reader }) => deepSnake(await reader.stats()) as object,
  }),
  route({
    name: 'examine',
    method: 'GET',
    path: '/doctor',
    permission: 'read',
    summary: 'Examines the server, the schema and the work, and says what to do about each finding.',
    answer: object({ data: listOf(ref('Finding')) }),
    handle: async ({ service }) => ({ data: await service.doctor.doctor() }),
  }),
  route({
    name: 'listKinds',
    method: 'GET',
    path: '/kinds',
    permission: 'read',
    summary: 'Open steps by kind, and how many live workers serve it.',
    answer: object({ data: listOf(ref('Kind')) }),
    async handle({ service, reader }) {
      const kinds = await service.read('the kinds', (session) => service.store.kinds(session));
      const live = (await reader.workers()).filter(({ status }) => status === 'idle' || status === 'busy');
      const idle = live.flatMap((worker) => worker.kinds).filter((name) => !kinds.some(({ kind }) => kind === name));
      const nothing = { pending: 0, available: 0, running: 0, waiting: 0, paused: 0, oldestAvailableAgeMs: null };
      const data = [...kinds, ...[...new Set(idle)].map((kind) => ({ kind, ...nothing }))]
        .toSorted((a, b) => (a.kind < b.kind ? -1 : 1))
        .map((kind) => ({
          ...snake(kind),
          live_workers: live.filter((worker) => worker.kinds.includes(kind.kind)).length,
        }));
      return { data };
    },
  }),
  route({
    name: 'listWorkers',
    method: 'GET',
    path: '/workers',
    permission: 'read',
    summary: 'The known workers, the oldest first.',
    answer: object({ data: listOf(ref('Worker')) }),
    handle: async ({ reader }) => ({ data: (await reader.workers()).map((worker) => snake(worker)) }),
  }),
  route<StrandedQuery>({
    name: 'listStrandedRuns',
    method: 'GET',
    path: '/health/stranded',
    permission: 'read',
    summary: 'Running runs that cannot go on by themselves, or whose counters are wrong.',
    query: StrandedQuery,
    answer: pageOf('StrandedRun'),
    async handle({ service, query: { limit, cursor } }) {
      const cursors = new Cursors('stranded', {});
      const after = cursor === undefined ? '0' : (cursors.decode(cursor, 1).at[0] ?? '');
      if (after !== '0' && !aRunId.accepts(after)) {
        throw new RefusedRequest('CYCLONE_INVALID_REQUEST', 'The cursor is none that a page of this list gave.');
      }
      const page = await service.read('stranded runs', (session) =>
        service.engine.operations.stranded(session, after, STRANDED_SCAN, limit),
      );
      const next = page.ended ? null : cursors.encode({ at: [page.walkedTo], backwards: false });
      return { data: page.runs.map((run) => snake(run)), next_cursor: next };
    },
  }),
  route<AuditQuery>({
    name: 'listAudit',
    method: 'GET',
    path: '/audit',
    permission: 'audit:read',
    summary: 'Who did what and why, the latest first, page by page.',
    query: AuditQuery,
    answer: pageOf('AuditEntry'),
    async handle({ reader, query: { run_id, action, actor, limit, cursor } }) {
      const page = await reader.audit({
        limit,
        ...(run_id === undefined ? {} : { runId: run_id }),
        ...(action === undefined ? {} : { action }),
        ...(actor === undefined ? {} : { actor }),
        ...(cursor === undefined ? {} : { cursor }),
      });
      return { data: page.entries.map((entry) => snake(entry)), next_cursor: page.next };
    },
  }),
];
