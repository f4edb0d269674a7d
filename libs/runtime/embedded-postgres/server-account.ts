import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  chmodSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { copyPostgresBinaries, linkPostgresLibraries, type PostgresBinaries } from './binaries.js';

/** Whom the server runs as: ourselves (empty), or another account when we are root, which PostgreSQL refuses. */
export type ServerAccount = { readonly uid?: number; readonly gid?: number };

// Only root writes here, so nobody can plant programs or data under a name that we would trust, as in /var/tmp.
const ROOT_OWNED_DIR = '/var/lib/waybill-embedded';

/** Chooses the account: not root → ourselves; else the owner of existing data, else `postgres`, else `nobody`. */
export function chooseServerAccount(dataDir: string): ServerAccount {
  const ownUid = process.getuid?.();
  const owner = existsSync(dataDir) ? statSync(dataDir) : null;
  if (ownUid !== 0) {
    if (owner && owner.uid !== ownUid) {
      throw new Error(
        `${dataDir} belongs to user id ${owner.uid}, we run as ${ownUid}: start as that user, or move the folder away`,
      );
    }
    return {};
  }
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const account = findAccount('postgres') ?? findAccount('nobody');
  if (!account) {
    throw new Error(
      'PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`: set DATABASE_URL',
    );
  }
  return account;
}

/**
 * Returns the folder that holds the data in truth: `dataDir`, or, where the account cannot reach that (a home
 * directory closed to others), a folder elsewhere that `dataDir` becomes a link to.
 */
export function placeDataDir(dataDir: string, account: ServerAccount): string {
  mkdirSync(dirname(dataDir), { recursive: true });
  const present = lstatSync(dataDir, { throwIfNoEntry: false });
  if (present?.isSymbolicLink()) {
    const target = resolve(dirname(dataDir), readlinkSync(dataDir));
    mkdirSync(dirname(target), { recursive: true });
    return target;
  }
  if (account.uid === undefined || canEnter(dirname(dataDir), account)) return dataDir;
  if (openForPassage(dirname(dataDir), account)) return dataDir;
  if (present)
    throw new Error(`user id ${account.uid} cannot reach ${dataDir}: move it, or open the folders above it`);
  mkdirSync(ROOT_OWNED_DIR, { recursive: true, mode: 0o755 });
  const home = mkdtempSync(join(ROOT_OWNED_DIR, 'data-'));
  chmodSync(home, 0o711);
  const target = join(home, 'postgres');
  symlinkSync(target, dataDir);
  return target;
}

/** Returns programs that the account can run: the installed ones, or a copy of them. */
export function reachableBinaries(
  installed: PostgresBinaries,
  account: ServerAccount,
  dataDir: string,
): PostgresBinaries {
  const linked = linkPostgresLibraries(installed);
  if (linked && canRun(installed.postgres, account)) return installed;
  const root = process.getuid?.() === 0 ? ROOT_OWNED_DIR : `${dataDir}.programs`;
  const copy = copyPostgresBinaries(installed, root);
  if (!canRun(copy.postgres, account)) {
    throw new Error(
      `${copy.postgres} does not run on this machine: set DATABASE_URL to a PostgreSQL 15 or later`,
    );
  }
  return copy;
}

function findAccount(name: string): ServerAccount | null {
  const [uid, gid] = ['-u', '-g'].map((flag) =>
    spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout?.trim(),
  );
  return uid && gid ? { uid: Number(uid), gid: Number(gid) } : null;
}

// A folder that holds our data and little else may be passed through, not listed; a home directory stays closed.
function openForPassage(folder: string, account: ServerAccount): boolean {
  const { uid, mode } = statSync(folder);
  if (uid !== 0 || folder === homedir() || !canEnter(dirname(folder), account)) return false;
  chmodSync(folder, (mode & 0o7777) | 0o111);
  return canEnter(folder, account);
}

// Asked of the kernel, as that account: modes alone do not tell about access lists and mount options.
function canEnter(folder: string, account: ServerAccount): boolean {
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', folder], { ...account, cwd: '/' }).status === 0;
}

function canRun(program: string, account: ServerAccount): boolean {
  return spawnSync(program, ['--version'], { ...account, cwd: '/' }).status === 0;
}
