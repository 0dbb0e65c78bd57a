import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

export interface SourceFile {
  /** Path from the root of the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** The TypeScript files below a folder of the repository, without the specs; none if there is no such folder. */
export function sourceFiles(folder: string): SourceFile[] {
  const absolute = join(ROOT, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts'))
    .map((name) => ({
      path: relative(ROOT, join(absolute, name)).split(sep).join('/'),
      text: readFileSync(join(absolute, name), 'utf8'),
    }));
}

/** Every module that the text names: imports and re-exports, of types as well, `import()` and `import('x')` types. */
export function importsOf(text: string): string[] {
  const found: string[] = [];
  visit(text, (node) => {
    if ((ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) && node.moduleSpecifier) {
      found.push((node.moduleSpecifier as ts.StringLiteral).text);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      found.push((node.argument.literal as ts.StringLiteral).text);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [specifier] = node.arguments;
      if (specifier && ts.isStringLiteralLike(specifier)) found.push(specifier.text);
    }
  });
  return found;
}

const STATEMENT =
  /^\s*(select|with|insert|update|delete|merge|truncate|create|alter|drop|lock|set|begin|start transaction|commit|rollback|savepoint|release|listen|unlisten|notify|call|do|explain|vacuum|analyze)\b/i;
const QUERY =
  /\b(SELECT\b[^]*\bFROM\b|SELECT\s+\w+\(|INSERT\s+INTO\b|UPDATE\b[^]*\bSET\b|DELETE\s+FROM\b|(CREATE|ALTER|DROP)\s+(TABLE|INDEX|SCHEMA|FUNCTION|TRIGGER|VIEW)\b|TRUNCATE\s+\w|LISTEN\s+\w)/;

/** Strings and templates that are SQL: any argument of query() that begins as a statement, and whole queries anywhere. */
export function sqlOf(text: string): string[] {
  const found = new Set<string>();
  visit(text, (node) => {
    if (isString(node) && QUERY.test(contents(node))) found.add(contents(node));
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const [sql] = node.arguments;
      if (node.expression.name.text === 'query' && sql && isString(sql) && STATEMENT.test(contents(sql))) {
        found.add(contents(sql));
      }
    }
  });
  return [...found];
}

type StringNode = ts.StringLiteralLike | ts.TemplateExpression;

function isString(node: ts.Node): node is StringNode {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

function contents(node: StringNode): string {
  if (ts.isStringLiteralLike(node)) return node.text;
  return node.head.text + node.templateSpans.map((span) => `x${span.literal.text}`).join('');
}

function visit(text: string, look: (node: ts.Node) => void): void {
  const step = (node: ts.Node): void => {
    look(node);
    ts.forEachChild(node, step);
  };
  step(ts.createSourceFile('source.ts', text, ts.ScriptTarget.ES2022, true));
}
