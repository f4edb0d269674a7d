import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

let home: string;
let launched: ChildProcess[];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'waybill-start-'));
  launched = [];
});
afterEach(async () => {
  for (const child of launched) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  rmSync(home, { recursive: true, force: true });
});

type Launch = { readonly child: ChildProcess; readonly said: () => string };

function launch(args: readonly string[], env: Record<string, string> = {}): Launch {
  const { DATABASE_URL: _unset, npm_lifecycle_event: _notNpm, ...inherited } = process.env;
  const ports = { WAYBILL_PORT: '0', WAYBILL_DISPATCHER_PORT: '0' };
  const child = spawn(process.execPath, [join(ROOT, 'scripts', 'start.mjs'), ...args], {
    env: { ...inherited, WAYBILL_HOME: home, ...ports, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  launched.push(child);
  let text = '';
  child.stdout.on('data', (chunk) => (text += String(chunk)));
  child.stderr.on('data', (chunk) => (text += String(chunk)));
  return { child, said: () => text };
}

async function isUp({ child, said }: Launch): Promise<void> {
  await expect
    .poll(() => child.exitCode !== null || said().includes('Ctrl-C stops everything'), { timeout: 90_000 })
    .toBe(true);
  if (child.exitCode !== null) throw new Error(`npm start ended with ${child.exitCode}:\n${said()}`);
}

/** The processes of the last start, by what they wrote themselves: an app is ready a moment before it has. */
async function startedPids(): Promise<number[]> {
  const apps: number[] = [];
  for (const name of ['api', 'dispatcher']) {
    const wholeLines = (): string[] =>
      readFileSync(join(home, 'log', `${name}.log`), 'utf8')
        .split('\n')
        .slice(0, -1);
    await expect.poll(() => wholeLines().length, { timeout: 10_000 }).toBeGreaterThan(0);
    const last: { pid: number } = JSON.parse(wholeLines().at(-1)!);
    apps.push(last.pid);
  }
  return [...apps, Number.parseInt(readFileSync(join(home, 'postgres', 'postmaster.pid'), 'utf8'), 10)];
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

// A start takes 3 s on an idle machine of two cores; 40 s were seen on one that is busy with other tests.
describe('npm start', { timeout: 180_000 }, () => {
  test('delivers five real payloads to a receiver that verifies them, and stops with 0', async () => {
    const { child, said } = launch(['--demo', '--once']);
    const [code] = await once(child, 'exit');
    expect(said().match(/✓ verified {2}github\./g)).toHaveLength(5);
    expect(said()).toContain('127.0.0.0/8,[::1]/128');
    expect(code).toBe(0);
    expect(existsSync(join(home, 'postgres', 'postmaster.pid'))).toBe(false);
    for (const kept of ['admin-key', 'encryption-key'])
      expect(statSync(join(home, kept)).mode & 0o777).toBe(0o600);
  });

  test('killed with -9 leaves no process, and the next start has the same keys', async () => {
    const first = launch([]);
    await isUp(first);
    const key = readFileSync(join(home, 'admin-key'), 'utf8').trim();
    const encryptionKey = readFileSync(join(home, 'encryption-key'), 'utf8');
    const pids = await startedPids();
    expect(pids.filter(isAlive)).toEqual(pids);
    first.child.kill('SIGKILL');
    await expect.poll(() => pids.filter(isAlive), { timeout: 30_000 }).toEqual([]);

    const second = launch([]);
    await isUp(second);
    expect(second.said()).toContain(key);
    expect(readFileSync(join(home, 'encryption-key'), 'utf8')).toBe(encryptionKey);
    expect(second.said()).not.toContain(encryptionKey.trim().slice(2));
    second.child.kill('SIGTERM');
    expect(await once(second.child, 'exit')).toEqual([0, null]);

    // A database that needs a key gets no other one.
    renameSync(join(home, 'encryption-key'), join(home, 'copy'));
    const third = launch([]);
    expect(await once(third.child, 'exit')).toEqual([1, null]);
    expect(third.said()).toMatch(/encryption-key is gone, the key to the endpoint secrets.*Restore it/);
    expect(existsSync(join(home, 'encryption-key'))).toBe(false);
  });

  test('ends with the reason when an app dies', async () => {
    const started = launch([]);
    await isUp(started);
    const [, dispatcher] = await startedPids();
    process.kill(dispatcher ?? 0, 'SIGKILL');
    const [code] = await once(started.child, 'exit');
    expect(code).toBe(1);
    expect(started.said()).toContain('dispatcher was ended by SIGKILL');
  });

  test('with a database of the user’s own asks for an encryption key before it touches anything', async () => {
    const { child, said } = launch([], { DATABASE_URL: 'postgresql://127.0.0.1:1/none' });
    expect(await once(child, 'exit')).toEqual([1, null]);
    expect(said()).toContain('WAYBILL_ENCRYPTION_KEY is not set');
    expect(said()).toContain('`openssl rand -base64 32`');
    expect(existsSync(join(home, 'encryption-key'))).toBe(false);
  });

  test('names the port and the setting when the port is taken', async () => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? String(address?.port) : '';
    const { child, said } = launch([], { WAYBILL_PORT: port });
    const [code] = await once(child, 'exit');
    other.close();
    expect(code).toBe(1);
    expect(said()).toMatch(new RegExp(`Port ${port} is in use.*WAYBILL_PORT=`));
  });
});
