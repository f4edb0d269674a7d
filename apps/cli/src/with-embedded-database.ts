import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findEmbeddedUrl } from '#runtime';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment, with the URL of the database that `npm start` runs where there is no DATABASE_URL, and the file of its
 * encryption key; says so.
 */
export function withEmbeddedDatabase(env: Environment, say: (line: string) => void): Environment {
  if (env['DATABASE_URL']) return env;
  const home = env['WAYBILL_HOME'] || '.waybill';
  const dataDir = join(home, 'postgres');
  const url = findEmbeddedUrl(dataDir);
  if (url === null) return env;
  say(`waybill: DATABASE_URL is not set: this is the embedded database of \`npm start\` in ${dataDir}`);
  return { ...env, DATABASE_URL: url, ...keyFileOf(home, env) };
}

function keyFileOf(home: string, env: Environment): Environment {
  const file = join(home, 'encryption-key');
  const isGiven = env['WAYBILL_ENCRYPTION_KEY'] || env['WAYBILL_ENCRYPTION_KEY_FILE'];
  return isGiven || !existsSync(file) ? {} : { WAYBILL_ENCRYPTION_KEY_FILE: file };
}
