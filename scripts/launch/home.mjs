import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the project. */
export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Where the embedded default keeps data, logs and key: `.waybill/`, or the folder that WAYBILL_HOME names. */
export const HOME = resolve(process.env.WAYBILL_HOME || join(ROOT, '.waybill'));
/** The kept admin key of the embedded default. */
export const KEY_FILE = join(HOME, 'admin-key');

/** The kept encryption key of the embedded default. */
export const ENCRYPTION_KEY_FILE = join(HOME, 'encryption-key');

/** A path as one would type it here. */
export function shortPath(path) {
  const short = relative(process.cwd(), path);
  return short === '' || short.startsWith('..') ? path : short;
}
