import type { Type } from '../model/options.js';
import { COMPONENTS } from './answers/components.js';
import { ADMIN_HEADER } from './admin.guard.js';
import { fieldsOf } from './field.js';
import { PROBLEMS } from './problem.js';
import type { AnyRoute } from './route.js';
import { object, ref, text, type Schema } from './schema.js';

/** The path under which the routes of this version stand, below the option `path`. */
export const API_PATH = 'api/v1';

type Json = Record<string, unknown>;

/** The OpenAPI 3.1 document of these routes, made from the table that the router is made of. */
export function openApi(routes: readonly AnyRoute[], base: string): Json {
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cyclone admin API',
      version: '1',
      description:
        'Look at runs and operate them. Errors are RFC 9457 problems with stable codes. Who may call it is up to the guards of the application.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: base }],
    paths,
    components: { schemas: COMPONENTS, responses: { Problem: problemResponse() } },
  };
}

function operationOf(route: AnyRoute): Json {
  const { name, method, path, permission, summary, query, body, answer } = route;
  const mutation = method !== 'GET';
  return {
    operationId: name,
    summary,
    description: `Needs the permission \`${permission}\`.`,
    'x-permission': permission,
    parameters: [...pathParameters(path), ...queryParameters(query), ...(mutation ? [HEADER] : [])],
    ...(mutation
      ? { requestBody: { required: true, content: { 'application/json': { schema: bodySchema(body) } } } }
      : {}),
    responses: {
      200: { description: 'Done.', content: { 'application/json': { schema: answer } } },
      ...Object.fromEntries(statusesOf(path, mutation).map((status) => [status, PROBLEM])),
    },
  };
}

const PROBLEM = { $ref: '#/components/responses/Problem' };

const HEADER = {
  name: ADMIN_HEADER,
  in: 'header',
  required: true,
  description: 'Says that no page of another origin sent this.',
  schema: { type: 'string', enum: ['1'] },
};

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    description: name === 'node' ? 'The name of the node, URL-encoded.' : 'The id of the run.',
    schema: name === 'node' ? text : COMPONENTS['Run']?.properties?.['id'],
  }));
}

function queryParameters(query: Type<object> | undefined): Json[] {
  return (query ? fieldsOf(query) : []).map(({ name, required, schema: { description, ...schema } }) => ({
    name,
    in: 'query',
    required,
    description,
    ...(schema.type === 'array' ? { style: 'form', explode: true } : {}),
    schema,
  }));
}

function bodySchema(body: Type<object> | undefined): Schema {
  const fields = body ? fieldsOf(body) : [];
  return object(
    Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    fields.filter(({ required }) => !required).map(({ name }) => name),
  );
}

function statusesOf(path: string, mutation: boolean): number[] {
  return [400, 401, 403, ...(path.includes(':') ? [404] : []), ...(mutation ? [405, 409, 415] : []), 500, 503];
}

function problemResponse(): Json {
  const codes = Object.entries(PROBLEMS).map(([code, [status, title]]) => `- ${status} \`${code}\`: ${title}`);
  return {
    description: `Nothing was changed, or for a 5xx maybe not.\n\n${codes.join('\n')}`,
    content: { 'application/problem+json': { schema: ref('Problem') } },
  };
}
