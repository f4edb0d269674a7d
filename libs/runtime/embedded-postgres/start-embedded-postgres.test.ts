import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findPostgresBinaries } from './binaries.js';
import { findEmbeddedUrl } from './find-embedded-url.js';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './start-embedded-postgres.js';
import { readPostmasterPid } from './postmaster-pid.js';
import { findProcess } from './process-identity.js';

let template: string;
let folder: string;
let dataDir: string;
let running: EmbeddedPostgres[];

// A first start takes a second or more; most tests begin with a copy of what one left behind.
beforeAll(async () => {
  template = newFolder();
  await (await startEmbeddedPostgres({ dataDir: join(template, 'postgres'), durable: false })).stop();
});
afterAll(() => rmSync(template, { recursive: true, force: true }));

beforeEach(() => {
  folder = newFolder();
  execFileSync('cp', ['-a', `${template}/.`, folder]);
  dataDir = join(folder, 'postgres');
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'waybill-postgres-')));
}

async function start(): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, durable: false });
  running.push(server);
  return server;
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Starts the server from a process of its own, so that this process can be killed. */
async function startFromOtherProcess(): Promise<{
  launcher: ReturnType<typeof spawn>;
  server: { url: string; pid: number };
}> {
  const source = join(import.meta.dirname, 'start-embedded-postgres.ts');
  const program = `
    import { createServer } from 'vite';
    const vite = await createServer({ configFile: false, server: { middlewareMode: true, ws: false, watch: null } });
    const { startEmbeddedPostgres } = await vite.ssrLoadModule(${JSON.stringify(source)});
    const { url, pid } = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, durable: false });
    console.log(JSON.stringify({ url, pid }));
    setInterval(() => undefined, 1_000);
  `;
  const launcher = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: launcher.stdout });
  const line = await new Promise((settle, fail) => {
    // Vite may have something to say on the same stream first.
    lines.on('line', (said) => said.startsWith('{') && settle(said));
    lines.once('close', () => fail(new Error('the launcher ended before its server was ready')));
  });
  return { launcher, server: JSON.parse(String(line)) };
}

function gone(pid: number) {
  return expect.poll(() => findProcess(pid), { timeout: 20_000, interval: 20 }).toBeNull();
}

describe('startEmbeddedPostgres', () => {
  test('gives an owner a database on loopback, in UTC, without a socket file', async () => {
    const { url, pid } = await start();
    expect(new URL(url)).toMatchObject({
      hostname: '127.0.0.1',
      username: 'waybill_owner',
      pathname: '/waybill',
    });
    expect(await query(url, 'show timezone')).toEqual([{ TimeZone: 'UTC' }]);
    expect(await query(url, 'show unix_socket_directories')).toEqual([{ unix_socket_directories: '' }]);
    expect(await query(url, 'show listen_addresses')).toEqual([{ listen_addresses: '127.0.0.1' }]);
    expect(findProcess(pid)?.command).toContain('postgres');
    expect(findEmbeddedUrl(dataDir)).toBe(url);
  });

  test('lets nobody in without the password, which only this user can read', async () => {
    const { url } = await start();
    for (const password of ['', 'wrong']) {
      const guess = new URL(url);
      guess.password = password;
      await expect(query(guess.href, 'select 1')).rejects.toThrow(/password/);
    }
    const methods = await query(url, 'select distinct auth_method from pg_hba_file_rules');
    expect(methods).toEqual([{ auth_method: 'scram-sha-256' }]);
    expect(statSync(`${dataDir}.password`).mode & 0o777).toBe(0o600);
    expect(statSync(`${dataDir}.log`).mode & 0o777).toBe(0o600);
  });

  test('stops twice as well as once, keeps the data, and leaves no process', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    await Promise.all([first.stop(), first.stop()]);
    await first.stop();
    expect(findProcess(first.pid)).toBeNull();
    expect(findEmbeddedUrl(dataDir)).toBeNull();
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('passes settings on to the server', async () => {
    const server = await startEmbeddedPostgres({
      dataDir,
      durable: false,
      settings: { max_connections: '17' },
    });
    running.push(server);
    expect(await query(server.url, 'show max_connections')).toEqual([{ max_connections: '17' }]);
  });

  test('tells when the server is killed, and the next start recovers what was committed', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    process.kill(first.pid, 'SIGKILL');
    await first.exited;
    await first.stop();
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('refuses a second launcher on the same folder and names the first', async () => {
    const { launcher, server } = await startFromOtherProcess();
    await expect(start()).rejects.toThrow(`in use by process ${launcher.pid}`);
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    launcher.kill('SIGKILL');
    await gone(server.pid);
  });

  test('leaves no postgres behind when its launcher is killed, and starts again on the data', async () => {
    const { launcher, server } = await startFromOtherProcess();
    await query(server.url, 'create table kept as select 42 as answer');
    launcher.kill('SIGKILL');
    await gone(server.pid);
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  test('starts at once after its launcher was killed, while the old server may still be stopping', async () => {
    const { launcher, server } = await startFromOtherProcess();
    launcher.kill('SIGKILL');
    await once(launcher, 'exit');
    const second = await start();
    expect(findProcess(server.pid)).toBeNull();
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('stops a server that runs on the folder without a watchdog, and starts its own', async () => {
    await (await start()).stop();
    const orphan = await startBareServer();
    const second = await start();
    expect(findProcess(orphan)).toBeNull();
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('is not held up by a postmaster.pid whose number now belongs to another process', async () => {
    await (await start()).stop();
    const owner = statSync(dataDir);
    const stranger = spawn('sleep', ['60'], { uid: owner.uid, gid: owner.gid, cwd: '/' });
    try {
      writeFileSync(
        join(dataDir, 'postmaster.pid'),
        `${stranger.pid}\n${dataDir}\n1\n5432\n\n127.0.0.1\n0 0\nready   \n`,
      );
      const second = await start();
      expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
      expect(stranger.exitCode).toBeNull();
    } finally {
      stranger.kill('SIGKILL');
    }
  });

  test('begins again after a first start that was killed half-way', async () => {
    const halfMade = join(folder, 'postgres.draft-0123456789ab');
    rmSync(dataDir, { recursive: true });
    mkdirSync(halfMade);
    writeFileSync(join(halfMade, 'PG_VERSION'), '18\n');
    await start();
    expect(readdirSync(folder).toSorted()).toEqual([
      'postgres',
      'postgres.lock',
      'postgres.log',
      'postgres.password',
    ]);
  });

  test('says what is missing when the password of existing data is gone', async () => {
    await (await start()).stop();
    rmSync(`${dataDir}.password`);
    await expect(start()).rejects.toThrow('postgres.password is gone');
  });

  test('shows what the server said when it does not start, and frees the folder', async () => {
    const broken = startEmbeddedPostgres({ dataDir, durable: false, settings: { no_such_setting: '1' } });
    await expect(broken).rejects.toThrow('no_such_setting');
    await start();
    expect(readFileSync(`${dataDir}.log`, 'utf8')).toContain('ready to accept connections');
  });
});

async function startBareServer(): Promise<number> {
  const { postgres } = await findPostgresBinaries();
  const owner = statSync(dataDir);
  const own = process.getuid?.() === owner.uid ? {} : { uid: owner.uid, gid: owner.gid };
  // A socket file in the data folder needs no port of the machine's.
  const flags = ['-c', 'listen_addresses=', '-c', `unix_socket_directories=${dataDir}`];
  const server = spawn(postgres, ['-D', dataDir, ...flags], {
    ...own,
    cwd: '/',
    stdio: 'ignore',
    detached: true,
  });
  await expect
    .poll(() => readPostmasterPid(dataDir), { timeout: 20_000, interval: 20 })
    .toEqual({ pid: server.pid, ready: true });
  return server.pid ?? 0;
}
