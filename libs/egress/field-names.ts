import { TOKEN } from './wire-bytes.js';

/** The fields of a response that anything depends on; the place in this list is a field's number. */
const NAMES = [
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'retry-after',
  'location',
] as const;

export const CONTENT_LENGTH = 0;
export const TRANSFER_ENCODING = 1;
export const CONNECTION = 2;
export const KEEP_ALIVE = 3;
export const RETRY_AFTER = 4;
export const LOCATION = 5;
export const FIELD_COUNT = NAMES.length;

/** Some name that nothing depends on. */
export const OTHER_FIELD = -1;

// A name is read byte by byte through a table of steps, in whatever pieces it comes: no text is made of names, and each
// byte costs one look into 20 KB.
const ILLEGAL = 0;
const OTHER = 1;
/** Where a name begins. */
export const NAME_START = 2;

const { steps, fields } = buildTable();

/** The step after this byte of a name, or 0 where no name may have it. */
export function nextStep(step: number, byte: number): number {
  return steps[(step << 8) | byte]!;
}

/** The number of the field whose name ends at this step. */
export function fieldAt(step: number): number {
  return fields[step]!;
}

function buildTable(): { steps: Uint8Array; fields: Int8Array } {
  const isToken = Array.from(
    { length: 256 },
    (_, byte) => byte < 0x80 && TOKEN.test(String.fromCharCode(byte)),
  );
  const anyOther = isToken.map((legal) => (legal ? OTHER : ILLEGAL));
  const rows: number[][] = [isToken.map(() => ILLEGAL), anyOther, [...anyOther]];
  const ends = new Map<number, number>();
  for (const [field, name] of NAMES.entries()) {
    let step = NAME_START;
    for (const character of name) {
      const row = rows[step]!;
      const byte = character.charCodeAt(0);
      if (row[byte] === OTHER) {
        const added = rows.push([...anyOther]) - 1;
        row[byte] = added;
        row[character.toUpperCase().charCodeAt(0)] = added;
      }
      step = row[byte]!;
    }
    ends.set(step, field);
  }
  return {
    steps: Uint8Array.from(rows.flat()),
    fields: Int8Array.from(rows, (_, step) => ends.get(step) ?? OTHER_FIELD),
  };
}
