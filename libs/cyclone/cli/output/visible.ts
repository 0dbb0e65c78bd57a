const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * What a terminal obeys or does not show: control characters, those that change the direction of writing or join letters, tags and
 * others without a shape of their own, separators of lines and paragraphs, halves of surrogate pairs.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** The same without the line feeds that stand between the values of JSON: inside of its texts they are spelled out already. */
const UNSEEN_IN_JSON = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * A text on one line in which control characters, and those that change the direction of writing, are spelled out: what somebody
 * has put into an error message or a name can neither steer the terminal nor forge a line.
 */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => SHORT[character] ?? spelled(character.codePointAt(0) ?? 0));
}

/** JSON of the same value, in which such characters are spelled out too. */
export function visibleJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(UNSEEN_IN_JSON, (character) =>
    Array.from({ length: character.length }, (_, i) => `\\u${hex(character.charCodeAt(i), 4)}`).join(''),
  );
}

function spelled(code: number): string {
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\u{${hex(code, 1)}}`;
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, '0');
