import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';

/** A live process as the system shows it; `started` tells it apart from an earlier one of the same number. */
export type LiveProcess = {
  readonly pid: number;
  readonly started: string;
  readonly command: string;
  readonly workingDirectory: string | null;
};

/** Returns the process of that number, or null when there is none; a zombie counts as none. */
export function findProcess(pid: number): LiveProcess | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  try {
    return process.platform === 'linux' ? readFromProc(pid) : readFromPs(pid);
  } catch {
    return null;
  }
}

// Slim containers ship no `ps`, so Linux is read from /proc.
function readFromProc(pid: number): LiveProcess | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The command's name stands in parentheses and may hold spaces and parentheses itself.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const state = fields[0] ?? 'X';
  if (state === 'Z' || state === 'X') return null;
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  return {
    pid,
    started: `${bootId}:${fields[19]}`,
    command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
    workingDirectory: workingDirectoryOf(pid),
  };
}

function workingDirectoryOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}

function readFromPs(pid: number): LiveProcess | null {
  const columns = ['-o', 'stat=', '-o', 'lstart=', '-o', 'command=', '-p', String(pid)];
  const line = execFileSync('ps', columns, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }).trim();
  const match = /^(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/.exec(line);
  if (!match || match[1]?.startsWith('Z')) return null;
  return { pid, started: match[2] ?? '', command: match[3] ?? '', workingDirectory: null };
}
