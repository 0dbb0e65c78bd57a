import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from '../structure/source-files.js';

const { options: OPTIONS } = ts.parseJsonConfigFileContent(
  {
    extends: join(ROOT, 'tsconfig.base.json'),
    compilerOptions: { noEmit: true, types: ['node'], isolatedModules: false },
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

/**
 * Compiles TypeScript as an application that uses the built library does, all files in one go.
 * @param files texts by names, which lie in the repository's folder
 * @returns the errors of each file
 */
export function compile(files: Readonly<Record<string, string>>): Record<string, Complaint[]> {
  const texts = new Map(Object.entries(files).map(([name, text]) => [join(ROOT, name), text]));
  const host = ts.createCompilerHost(OPTIONS);
  const { getSourceFile, fileExists, readFile } = host;
  host.fileExists = (path) => texts.has(path) || fileExists(path);
  host.readFile = (path) => texts.get(path) ?? readFile(path);
  host.getSourceFile = (path, version, ...rest) => {
    const text = texts.get(path);
    return text === undefined ? getSourceFile(path, version, ...rest) : ts.createSourceFile(path, text, version);
  };
  const program = ts.createProgram([...texts.keys()], OPTIONS, host);
  return Object.fromEntries(
    [...texts.keys()].map((path, index) => {
      const source = program.getSourceFile(path);
      const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
      return [Object.keys(files)[index], found.map(complaintOf)];
    }),
  );
}

function complaintOf({ file, start, messageText }: ts.Diagnostic): Complaint {
  return {
    line: file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0,
    text: ts.flattenDiagnosticMessageText(messageText, '\n'),
  };
}
