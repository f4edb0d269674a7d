import { createHash } from 'node:crypto';

const OPERATOR_KEY = /^[\x21-\x7e]{32,512}$/;

/** Whether a text can stand in an API key for the installation it is of. */
export function isKeyEnv(text: string): boolean {
  return /^[a-z0-9]{1,16}$/.test(text);
}

/** Reads WAYBILL_ENV, which stands in every API key. */
export function readKeyEnv(text: string | undefined, faults: string[]): string {
  const env = text || 'live';
  if (!isKeyEnv(env)) {
    faults.push(`WAYBILL_ENV must be 1 to 16 lower-case letters and digits, not "${env}"`);
  }
  return env;
}

/**
 * Reads WAYBILL_OPERATOR_KEY: several, separated by commas, while one is replaced by another. Only their digests are kept,
 * and no fault repeats them.
 */
export function readOperatorKeys(text: string | undefined, faults: string[]): readonly Buffer[] {
  if (text === undefined || text === '') return [];
  const keys = text.split(',').map((key) => key.trim());
  if (!keys.every((key) => OPERATOR_KEY.test(key))) {
    faults.push(
      'WAYBILL_OPERATOR_KEY must be keys of 32 to 512 printable ASCII characters without spaces, separated by commas: openssl rand -hex 32',
    );
  }
  if (keys.some((key) => key.startsWith('wb_'))) {
    faults.push('WAYBILL_OPERATOR_KEY must not begin with wb_: it is no API key of a tenant');
  }
  return keys.map((key) => createHash('sha256').update(key).digest());
}
