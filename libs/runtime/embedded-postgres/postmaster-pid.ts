import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { errorCode } from '../error-code.js';
import { findProcess } from './process-identity.js';

// Above every limit on process numbers (Linux 2^22, macOS 99,999), so that it never names a process.
const NO_PROCESS = 2_147_483_646;
const FAST_STOP_MS = 20_000;
const IMMEDIATE_STOP_MS = 10_000;

/** What postmaster.pid says: the server's process number, and whether it takes connections. */
export function readPostmasterPid(dataDir: string): { pid: number; ready: boolean } | null {
  try {
    const lines = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n');
    const pid = Number.parseInt(lines[0] ?? '', 10);
    return Number.isNaN(pid) ? null : { pid, ready: lines[7]?.trim() === 'ready' };
  } catch {
    return null;
  }
}

/**
 * Clears the way for a new server on `dataDir`: stops one that outlived its launcher, and makes a stale
 * postmaster.pid harmless. Only for the holder of the folder's lock.
 */
export async function clearOldPostmaster(dataDir: string): Promise<void> {
  const old = readPostmasterPid(dataDir);
  if (!old || old.pid === NO_PROCESS) return;
  if (isPostmasterOf(old.pid, dataDir)) await stopPostmaster(old.pid, dataDir);
  else disownPostmasterPid(dataDir);
}

/** Stops the server of that number: a fast shutdown first, an immediate one (recovery follows) if it hangs. */
export async function stopPostmaster(pid: number, dataDir: string): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
  ] as const) {
    if (!isPostmasterOf(pid, dataDir)) return;
    sendSignal(pid, signal);
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!isPostmasterOf(pid, dataDir)) return;
      await delay(20);
    }
  }
  throw new Error(`PostgreSQL (process ${pid}) on ${dataDir} does not stop`);
}

function isPostmasterOf(pid: number, dataDir: string): boolean {
  const found = findProcess(pid);
  if (!found || !/(^|\/)postgres(:|\s|$)/.test(found.command)) return false;
  return found.workingDirectory === dataDir || `${found.command} `.includes(`-D ${dataDir} `);
}

// A number that now belongs to another process makes postgres refuse to start. The file is not removed: its seventh
// line is how postgres sees that backends of a killed server still hold the shared memory.
function disownPostmasterPid(dataDir: string): void {
  const path = join(dataDir, 'postmaster.pid');
  const lines = readFileSync(path, 'utf8').split('\n');
  writeFileSync(path, [String(NO_PROCESS), ...lines.slice(1)].join('\n'));
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (errorCode(error) !== 'ESRCH') throw error;
  }
}
