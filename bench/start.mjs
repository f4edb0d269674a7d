// What a newcomer waits for and what an idle Waybill takes: `npm run bench:start`. Prints, asserts nothing.
// Clones HEAD into a folder of its own with an empty npm cache; needs git and, for the idle figures, Linux.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IDLE_SECONDS = 20;
const TICKS_PER_SECOND = 100;

const folder = mkdtempSync(join(tmpdir(), 'waybill-bench-start-'));
const clone = join(folder, 'waybill');
const env = {
  ...process.env,
  npm_config_cache: join(folder, 'npm-cache'),
  WAYBILL_PORT: '0',
  WAYBILL_DISPATCHER_PORT: '0',
};
delete env.DATABASE_URL;

try {
  execFileSync('git', ['clone', '--quiet', process.cwd(), clone]);
  print('fresh clone, empty npm cache, to five verified deliveries and stopped', demoSeconds(), 's');
  print('the same a second time', demoSeconds(), 's');
  await idle();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function demoSeconds() {
  const startedAt = performance.now();
  execFileSync('npm', ['start', '--', '--demo', '--once'], {
    cwd: clone,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return (performance.now() - startedAt) / 1000;
}

/** Resident memory and processor time of the two processes when nothing is to do. */
async function idle() {
  const startedAt = performance.now();
  const launcher = spawn('node', ['scripts/start.mjs'], {
    cwd: clone,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => launcher.once('exit', resolve));
  let said = '';
  await new Promise((resolve) => {
    launcher.stdout.on('data', (chunk) => {
      said += chunk;
      if (said.includes('Waybill is up')) resolve();
    });
  });
  print(
    'start with everything built, until it says that it is up',
    (performance.now() - startedAt) / 1000,
    's',
  );
  await seconds(10);
  const apps = ['api', 'dispatcher'].map((name) => ({ name, pid: pidOf(name) }));
  const before = apps.map(({ pid }) => ticksOf(pid));
  await seconds(IDLE_SECONDS);
  for (const [index, { name, pid }] of apps.entries()) {
    print(`${name}, idle, resident`, residentMegabytes(pid), 'MB');
    print(
      `${name}, idle, of one core`,
      ((ticksOf(pid) - before[index]) / TICKS_PER_SECOND / IDLE_SECONDS) * 100,
      '%',
    );
  }
  launcher.kill('SIGTERM');
  await ended;
}

function pidOf(app) {
  const entry = join(clone, 'dist', 'apps', app, 'src', 'main.js');
  return readdirSync('/proc').find((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] === entry;
    } catch {
      return false;
    }
  });
}

function ticksOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

function residentMegabytes(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;
}

function seconds(count) {
  return new Promise((resolve) => setTimeout(resolve, count * 1000));
}

function print(what, value, unit) {
  console.log(`${value.toFixed(1).padStart(8)} ${unit.padEnd(2)}  ${what}`);
}
