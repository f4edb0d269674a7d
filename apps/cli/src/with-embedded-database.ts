import { join } from 'node:path';
import { findEmbeddedUrl } from '#runtime';

type Environment = Readonly<Record<string, string | undefined>>;

/** The environment, with the URL of the database that `npm start` runs where there is no DATABASE_URL; says so. */
export function withEmbeddedDatabase(env: Environment, say: (line: string) => void): Environment {
  if (env['DATABASE_URL']) return env;
  const dataDir = join(env['WAYBILL_HOME'] || '.waybill', 'postgres');
  const url = findEmbeddedUrl(dataDir);
  if (url === null) return env;
  say(`waybill: DATABASE_URL is not set: this is the embedded database of \`npm start\` in ${dataDir}`);
  return { ...env, DATABASE_URL: url };
}
