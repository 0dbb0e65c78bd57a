import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from '../structure/source-files.js';

const { options: OPTIONS } = ts.parseJsonConfigFileContent(
  {
    extends: join(ROOT, 'tsconfig.base.json'),
    compilerOptions: { types: ['node'], isolatedModules: false },
    files: [],
  },
  ts.sys,
  ROOT,
);

/** What the compiler says of one place. */
export interface Complaint {
  /** Of the file, from 1. */
  readonly line: number;
  /** With everything below it, each on a line of its own. */
  readonly text: string;
}

/** Texts by names, which lie in the repository's folder. */
export type Texts = Readonly<Record<string, string>>;

/** Declarations of packages, which do not change while the tests run. */
const parsed = new Map<string, ts.SourceFile | undefined>();

function programOf(files: Texts): ts.Program {
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(ROOT, name), text]));
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, version);
    if (!parsed.has(path)) parsed.set(path, getSourceFile(path, version, ...rest));
    return parsed.get(path);
  };
  return ts.createProgram([...texts.keys()], OPTIONS, host);
}

/** Compiles TypeScript as an application that uses the built library does, all files in one go. Gives the errors of each file. */
export function compile(files: Texts): Record<string, Complaint[]> {
  const program = programOf(files);
  return Object.fromEntries(
    Object.keys(files).map((name) => {
      const source = program.getSourceFile(join(ROOT, name));
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return [name, found.map(complaintOf)];
    }),
  );
}

/** The JavaScript of one file. */
export function emit(name: string, text: string): string {
  const program = programOf({ [name]: text });
  let script = '';
  program.emit(program.getSourceFile(join(ROOT, name)), (_path, written) => (script = written));
  return script;
}

/** Which of the packages exports a name; the first that does. */
export function exportsOf(packages: readonly string[]): Map<string, string> {
  const name = 'exports.ts';
  const program = programOf({ [name]: packages.map((module) => `import '${module}';\n`).join('') });
  const checker = program.getTypeChecker();
  const found = new Map<string, string>();
  for (const statement of program.getSourceFile(join(ROOT, name))?.statements ?? []) {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) continue;
    const module = checker.getSymbolAtLocation(statement.moduleSpecifier);
    if (!module) throw new Error(`There is no module ${statement.moduleSpecifier.text}.`);
    for (const { name: exported } of checker.getExportsOfModule(module)) {
      if (!found.has(exported)) found.set(exported, statement.moduleSpecifier.text);
    }
  }
  return found;
}

function complaintOf({ file, start, messageText }: ts.Diagnostic): Complaint {
  return {
    line: file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0,
    text: ts.flattenDiagnosticMessageText(messageText, '\n'),
  };
}
