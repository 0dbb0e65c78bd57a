import type { TransactionProblem } from '../../model/errors/index.js';
import { sqlTokens, type SqlToken } from './sql-tokens.js';

/** Statements without any of these words do no harm. */
const SUSPICIOUS = /\b(?:set|reset|discard|listen|set_config|commit|end|prepare|rollback|abort)\b/i;
/** What a SET may be about: the rest of it outlives the transaction. */
const LOCAL_SETS: ReadonlySet<string | undefined> = new Set(['local', 'transaction', 'constraints']);
/** After these a statement of PL/pgSQL begins. */
const STATEMENT_FOLLOWS: ReadonlySet<string | undefined> = new Set(['begin', 'then', 'else', 'loop']);

/**
 * Whether a text of one or more statements would end the transaction that it runs in, or change its session for longer than it lasts:
 * the next user of the pool's connection would inherit that (R14). It sees what stands in the text, DO blocks included, and not what a
 * function of the application does.
 */
export function transactionControl(sql: unknown): TransactionProblem | undefined {
  if (typeof sql !== 'string' || !SUSPICIOUS.test(sql)) return undefined;
  for (const statement of statementsOf(sql)) {
    const problem = endsTransaction(statement) ?? (changesSession(statement) ? 'session' : undefined);
    if (problem) return problem;
  }
  return undefined;
}

function* statementsOf(sql: string): Generator<SqlToken[]> {
  let statement: SqlToken[] = [];
  for (const token of sqlTokens(sql)) {
    if (token.kind === 'word' && token.text === 'atomic' && statement[0]?.text === 'create') return; // the body of a function follows
    if (token.kind === 'symbol' && token.text === ';') {
      yield statement;
      statement = [];
    } else statement.push(token);
  }
  yield statement;
}

function endsTransaction([first, ...rest]: readonly SqlToken[]): TransactionProblem | undefined {
  const words = rest.filter(({ text }) => text !== 'work' && text !== 'transaction').map(({ text }) => text);
  switch (first?.text) {
    case 'commit':
    case 'end':
      return 'committed';
    case 'prepare':
      return rest[0]?.text === 'transaction' ? 'committed' : undefined;
    case 'rollback':
    case 'abort':
      return words[0] === 'to' ? undefined : 'rolled_back';
    default:
      return undefined;
  }
}

function changesSession(statement: readonly SqlToken[]): boolean {
  const [first, second] = statement;
  if (first?.kind !== 'word') return false;
  if (isSessionCommand(first.text, second?.text) || statement.some((_, index) => setsForSession(statement, index)))
    return true;
  if (first.text !== 'do') return false;
  return statement.some(({ kind, text }) => kind === 'string' && blockChangesSession(text));
}

function isSessionCommand(word: string, next: string | undefined): boolean {
  return word === 'reset' || word === 'discard' || word === 'listen' || (word === 'set' && !LOCAL_SETS.has(next));
}

/** `set_config(…, …, false)` is a SET. */
function setsForSession(statement: readonly SqlToken[], at: number): boolean {
  if (statement[at]?.text !== 'set_config' || statement[at + 1]?.text !== '(') return false;
  let depth = 0;
  let commas = 0;
  let last = '';
  for (const { kind, text } of statement.slice(at + 1)) {
    if (kind === 'symbol' && text === '(') depth++;
    else if (kind === 'symbol' && text === ')' && --depth === 0) break;
    else if (kind === 'symbol' && text === ',' && depth === 1) commas++;
    else if (commas === 2) last += text;
  }
  return /^(?:false|f|no|off|0)(?:::?bool(?:ean)?)?$/i.test(last);
}

/** The statements of a DO block, and what it executes as a literal text. */
function blockChangesSession(block: string): boolean {
  const tokens = [...sqlTokens(block)];
  return tokens.some((token, index) => {
    const before = tokens[index - 1];
    const next = tokens[index + 1];
    if (token.kind === 'string') return before?.text === 'execute' && transactionControl(token.text) === 'session';
    if (token.kind !== 'word') return false;
    if (setsForSession(tokens, index)) return true;
    const begins =
      before === undefined || before.text === ';' || (before.kind === 'word' && STATEMENT_FOLLOWS.has(before.text));
    return begins && isSessionCommand(token.text, next?.text);
  });
}
