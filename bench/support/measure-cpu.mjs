import { readdirSync, readFileSync } from 'node:fs';

const MICROSECONDS_PER_TICK = 10_000;

/** Processor time of one process so far, in µs. */
export function processCpuUs(pid) {
  const { ownTicks } = readStat(pid);
  return ownTicks * MICROSECONDS_PER_TICK;
}

/** Processor time of a server and all its children so far, in µs: backends that have ended count into the server's own. */
export function treeCpuUs(pid) {
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(name))
    .filter((stat) => stat?.parent === pid);
  const ticks = [readStat(pid), ...children].reduce((sum, stat) => sum + stat.ownTicks + stat.endedTicks, 0);
  return ticks * MICROSECONDS_PER_TICK;
}

/** Resident memory of a process in MB. */
export function residentMb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

function readStat(pid) {
  let text;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return undefined;
  }
  // The command's name stands in parentheses and may hold spaces and parentheses itself.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  return { parent: fields[1], ownTicks: fields[11] + fields[12], endedTicks: fields[13] + fields[14] };
}
