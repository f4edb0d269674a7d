import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EMBEDDED_DATABASE, EMBEDDED_OWNER } from './cluster.js';

const PORT_LINE = 3;

/**
 * The URL of the server that somebody else started on `dataDir`, from the files it keeps there; null when none runs, or
 * when this user may not read them. The port is the system's pick, so it is another after each start.
 */
export function findEmbeddedUrl(dataDir: string): string | null {
  try {
    const port = Number(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')[PORT_LINE]);
    if (!Number.isInteger(port) || port < 1) return null;
    const password = readFileSync(`${dataDir}.password`, 'utf8').trim();
    return `postgresql://${EMBEDDED_OWNER}:${password}@127.0.0.1:${port}/${EMBEDDED_DATABASE}`;
  } catch {
    return null;
  }
}
