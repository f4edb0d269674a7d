import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { errorCode } from '../error-code.js';
import type { ServerAccount } from './server-account.js';
import type { PostgresBinaries } from './binaries.js';

/** The owner of the embedded cluster and of the database in it. */
export const EMBEDDED_OWNER = 'waybill_owner';
/** The database that the embedded server holds. */
export const EMBEDDED_DATABASE = 'waybill';

const runFile = promisify(execFile);

/**
 * Makes the data folder if there is none and returns the owner's password, which is kept at `passwordPath` for this
 * user alone. A start that is killed half-way leaves nothing that a later one would take for a finished cluster.
 */
export async function prepareCluster(
  binaries: PostgresBinaries,
  account: ServerAccount,
  dataDir: string,
  passwordPath: string,
  durable: boolean,
): Promise<string> {
  removeDrafts(dataDir);
  if (existsSync(join(dataDir, 'PG_VERSION'))) {
    if (existsSync(passwordPath)) return readFileSync(passwordPath, 'utf8').trim();
    throw new Error(
      `${dataDir} holds a database but its password file ${passwordPath} is gone: restore it, or move the data away`,
    );
  }
  const password = randomBytes(24).toString('base64url');
  writeFileSync(passwordPath, `${password}\n`, { mode: 0o600 });
  const draft = `${dataDir}.draft-${randomBytes(6).toString('hex')}`;
  await initializeCluster(binaries, account, draft, password, durable);
  renameSync(draft, dataDir);
  return password;
}

/** Creates the database of ours unless it is there; proves on the way that port and password are right. */
export async function ensureDatabase(url: string): Promise<void> {
  try {
    await withClient(url, async () => undefined);
  } catch (error) {
    const missingDatabase = '3D000';
    if (errorCode(error) !== missingDatabase) throw error;
    const elsewhere = new URL(url);
    elsewhere.pathname = '/postgres';
    await withClient(elsewhere.href, (client) => client.query(`create database ${EMBEDDED_DATABASE}`));
  }
}

async function initializeCluster(
  binaries: PostgresBinaries,
  account: ServerAccount,
  draft: string,
  password: string,
  durable: boolean,
): Promise<void> {
  const passwordDraft = `${draft}.password`;
  mkdirSync(draft, { mode: 0o700 });
  writeFileSync(passwordDraft, password, { mode: 0o600 });
  if (account.uid !== undefined && account.gid !== undefined) {
    chownSync(draft, account.uid, account.gid);
    chownSync(passwordDraft, account.uid, account.gid);
  }
  const options = [
    `--pgdata=${draft}`,
    `--username=${EMBEDDED_OWNER}`,
    `--pwfile=${passwordDraft}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The provider inside PostgreSQL sorts and folds alike on every machine, whatever locales that has.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ];
  try {
    await runFile(binaries.initdb, options, { ...account, cwd: '/', env: serverEnvironment() });
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    const output = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new Error(`initdb could not make the database in ${dirname(draft)}: ${output}`, { cause: error });
  } finally {
    rmSync(passwordDraft, { force: true });
  }
}

/** What the server's programs see of the environment: none of the user's PG* settings, no locale of the machine. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}

function removeDrafts(dataDir: string): void {
  const prefix = `${basename(dataDir)}.draft-`;
  for (const name of readdirSync(dirname(dataDir))) {
    if (name.startsWith(prefix)) rmSync(join(dirname(dataDir), name), { recursive: true, force: true });
  }
}

async function withClient(url: string, use: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}
