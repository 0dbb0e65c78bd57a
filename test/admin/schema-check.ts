interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
}

export interface OpenApiDocument {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly operationId: string;
            readonly responses: Readonly<
              Record<string, { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }>
            >;
          }
        >
      >
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Where a value is not what its schema says. Knows as much of JSON Schema as the document uses. */
export function violations(document: OpenApiDocument, schema: Schema, value: unknown, at = '$'): string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    const target = document.components.schemas[name];
    return target ? violations(document, target, value, at) : [`${at}: no schema ${name}`];
  }
  if (schema.anyOf) {
    const all = schema.anyOf.map((one) => violations(document, one, value, at));
    return all.some((found) => found.length === 0) ? [] : all.flat();
  }
  const found: string[] = [];
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOf(type, value)))
    return [`${at}: ${JSON.stringify(value)} is no ${types}`];
  if (schema.enum && !schema.enum.includes(value)) found.push(`${at}: ${JSON.stringify(value)} is none of the enum`);
  if (typeof value === 'string') {
    if (schema.pattern && !new RegExp(schema.pattern).test(value)) found.push(`${at}: ${value} does not match`);
    if (schema.format === 'date-time' && !/^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$/.test(value)) {
      found.push(`${at}: ${value} is no time in UTC`);
    }
  }
  if (Array.isArray(value) && schema.items) {
    value.forEach((item, i) => found.push(...violations(document, schema.items as Schema, item, `${at}[${i}]`)));
  } else if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    for (const key of schema.required ?? []) if (!(key in value)) found.push(`${at}.${key} is missing`);
    for (const [key, item] of Object.entries(value)) {
      const rest = schema.additionalProperties;
      const property = schema.properties?.[key] ?? (typeof rest === 'object' ? rest : undefined);
      if (property) found.push(...violations(document, property, item, `${at}.${key}`));
      else if (rest === false) found.push(`${at}.${key} is not described`);
    }
  }
  return found;
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  return typeof value === type;
}
