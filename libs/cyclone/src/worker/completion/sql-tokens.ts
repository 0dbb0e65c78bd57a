/** A word, a string with its quotes taken off, or any other character of SQL. Comments and blanks are none. */
export interface SqlToken {
  readonly kind: 'word' | 'string' | 'symbol';
  /** A word is in lower case, unless it was quoted. */
  readonly text: string;
}

const WORD = /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y;
const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;

/** Splits SQL as Postgres does with standard_conforming_strings, in the length of its text. What is left open runs to the end. */
export function* sqlTokens(sql: string): Generator<SqlToken> {
  for (let at = 0; at < sql.length;) {
    const character = sql.charAt(at);
    if (sql.startsWith('--', at)) at = endOf(sql, '\n', at);
    else if (sql.startsWith('/*', at)) at = endOfComment(sql, at);
    else if (character === "'" || character === '"') {
      const end = endOfQuoted(
        sql,
        character,
        at,
        character === "'" && /(?:^|[^\w$])[eE]$/.test(sql.slice(Math.max(0, at - 2), at)),
      );
      yield { kind: character === "'" ? 'string' : 'word', text: sql.slice(at + 1, end - 1) };
      at = end;
    } else if (matches(DOLLAR_QUOTE, sql, at)) {
      const tag = sql.slice(at, DOLLAR_QUOTE.lastIndex);
      const end = endOf(sql, tag, at + tag.length);
      yield { kind: 'string', text: sql.slice(at + tag.length, end).replace(tag, '') };
      at = end;
    } else if (matches(WORD, sql, at)) {
      yield { kind: 'word', text: sql.slice(at, WORD.lastIndex).toLowerCase() };
      at = WORD.lastIndex;
    } else {
      if (character.trim() !== '') yield { kind: 'symbol', text: character };
      at++;
    }
  }
}

function matches(pattern: RegExp, sql: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(sql);
}

function endOf(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from);
  return found < 0 ? sql.length : found + mark.length;
}

/** Comments nest. */
function endOfComment(sql: string, from: number): number {
  let at = from + 2;
  for (let depth = 1; depth > 0 && at < sql.length;) {
    if (sql.startsWith('/*', at)) depth++;
    else if (sql.startsWith('*/', at)) depth--;
    else {
      at++;
      continue;
    }
    at += 2;
  }
  return at;
}

/** A quote is doubled to stand in its text, or has a backslash before it in an E'' string. */
function endOfQuoted(sql: string, quote: string, from: number, escapes: boolean): number {
  for (let at = from + 1; at < sql.length; at++) {
    const character = sql.charAt(at);
    if (character === '\\' && escapes) at++;
    else if (character === quote) {
      if (sql.charAt(at + 1) !== quote) return at + 1;
      at++;
    }
  }
  return sql.length;
}
