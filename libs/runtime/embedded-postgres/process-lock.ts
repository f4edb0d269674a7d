import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { errorCode } from '../error-code.js';
import { findProcess } from './process-identity.js';

type Holder = { readonly pid: number; readonly started: string };

/**
 * Takes the lock file at `path` for this process and returns the function that gives it back. Throws, naming the
 * holder's pid, while a live process holds it; a dead process, or another one with its old number, holds nothing.
 */
export function takeProcessLock(path: string, what: string): () => void {
  const token = `${process.pid}-${randomBytes(6).toString('hex')}`;
  const draft = `${path}.${token}`;
  const text = JSON.stringify({ pid: process.pid, started: findProcess(process.pid)?.started ?? '', token });
  // A hard link appears with its content in one step, so that no one ever reads a half-written lock.
  writeFileSync(draft, text, { flag: 'wx', mode: 0o644 });
  try {
    while (!linked(draft, path)) {
      const found = readText(path);
      if (found === null) continue;
      const holder = liveHolder(found);
      if (holder) throw new Error(`${what} is in use by process ${holder.pid}: stop that one first`);
      setAside(path, found, `${path}.stale-${token}`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
  return () => {
    if (readText(path) === text) rmSync(path, { force: true });
  };
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
}

function liveHolder(text: string): Holder | null {
  try {
    const holder: Holder = JSON.parse(text);
    return findProcess(holder.pid)?.started === holder.started ? holder : null;
  } catch {
    return null;
  }
}

// Two may find the same dead lock: the slower one must not carry off the lock that the faster one has just made.
function setAside(path: string, judgedDead: string, aside: string): void {
  try {
    renameSync(path, aside);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    throw error;
  }
  if (readText(aside) !== judgedDead) linked(aside, path);
  rmSync(aside, { force: true });
}
