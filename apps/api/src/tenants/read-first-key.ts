import { AppError } from '#runtime';
import type { NewApiKey } from '#tenants';
import { unknownField } from '../http/dto.pipe.js';

const NAME_DEFAULT = 'first key';
const SCOPES_DEFAULT = ['admin'];
const FIELDS = new Set(['name', 'scopes']);

/**
 * Reads `first_key`: null when none is asked for; `{}` is an admin key. Throws `unknown_field` and `validation_failed`;
 * whether its name and scopes can be, making it says.
 */
export function readFirstKey(value: unknown): NewApiKey | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'object' || Array.isArray(value)) throw refused('first_key', 'must be an object');
  const unknown = Object.keys(value).filter((field) => !FIELDS.has(field));
  if (unknown.length > 0) throw unknownField(unknown.map((field) => `first_key.${field}`));
  const { name = NAME_DEFAULT, scopes = SCOPES_DEFAULT } = value as { name?: unknown; scopes?: unknown };
  if (typeof name !== 'string') throw refused('first_key.name', 'must be a string');
  if (!isListOfStrings(scopes)) throw refused('first_key.scopes', 'must be a list of strings');
  return { name, scopes };
}

function isListOfStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}

function refused(field: string, rule: string): AppError {
  return new AppError('validation_failed', `${field} ${rule}.`, { details: [{ field, reason: 'invalid' }] });
}
