// `npm start`: database, migrations, the api and the dispatcher, and what one needs to try them. Everything that is
// started here ends with this process, in whatever way that ends.
import { mkdirSync, realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { keepAdminKey, readAdminKey } from './launch/admin-key.mjs';
import { startApp } from './launch/app-process.mjs';
import { keepEncryptionKey } from './launch/encryption-key.mjs';
import { ENCRYPTION_KEY_FILE, HOME, KEY_FILE, ROOT, shortPath } from './launch/home.mjs';
import { compactLine } from './launch/log-line.mjs';
import { paintFor } from './launch/paint.mjs';
import { isPortFree } from './launch/port.mjs';
import { onStopSignal } from './launch/stop-signals.mjs';
import { summaryText } from './launch/summary.mjs';

// The dispatcher's own grace is 20 s; five more to record and leave.
const STOP_MS = 25_000;
const LOOPBACK_HINT = 'WAYBILL_EGRESS_ALLOW=127.0.0.0/8 WAYBILL_ALLOW_HTTP=true';
const HELP = `npm start [-- options]
  --demo   send five real payloads to a receiver and show them arrive
  --once   with --demo: stop afterwards; exit code 0 if all arrived and verified, else 1

  Without DATABASE_URL a PostgreSQL is started in .waybill/ for this machine alone.
`;

const embedded = !process.env.DATABASE_URL;
const makesKey = embedded && !process.env.WAYBILL_ENCRYPTION_KEY && !process.env.WAYBILL_ENCRYPTION_KEY_FILE;
// With a database of the user's own the apps' JSON lines are standard output, and nothing else is.
const screen = embedded ? process.stdout : process.stderr;
const paint = paintFor(screen);
const print = (text) => screen.write(`${text}\n`);

/** What runs, in the order of starting; stopped in the opposite order. */
const running = [];
let stopping = null;
/** The step of the start that is under way: what it starts must be stopped too. */
let starting = Promise.resolve();

const options = readOptions();
onStopSignal((reason) => {
  if (stopping) process.exit(130);
  void stopAll(0, `Stopping (${reason}) …`);
});
try {
  await start(options);
} catch (error) {
  await stopAll(1, paint.red(error.message));
}

async function start({ demo, once }) {
  await step(requireGoodSettings);
  if (embedded) mkdirSync(join(HOME, 'log'), { recursive: true });
  // First, since it knows when another `npm start` is running here.
  const database = await step(() => openDatabase());
  await step(() => requireFreePorts());
  const key = await step(() => prepareDatabase(database.url));
  if (makesKey) await step(() => prepareEncryptionKey(database.url));
  const env = { ...process.env, DATABASE_URL: database.url, ...(embedded ? embeddedSettings() : {}) };
  const [api] = await step(() => startApps(env));
  const apiUrl = await api.ready;
  print(
    summaryText(
      { apiUrl, key, keyFile: embedded ? shortPath(KEY_FILE) : null, ...whereabouts(database, env) },
      paint,
    ),
  );
  if (demo) await demonstrate(apiUrl, key, once);
}

async function step(work) {
  if (stopping) return new Promise(() => undefined);
  const result = work();
  starting = result.then(
    () => undefined,
    () => undefined,
  );
  const value = await result;
  return stopping ? new Promise(() => undefined) : value;
}

/** All that is in the way at once, so that nobody mends one port only to hear of the next. */
async function requireFreePorts() {
  const host = process.env.WAYBILL_HOST || '127.0.0.1';
  const taken = [];
  for (const [setting, fallback] of [
    ['WAYBILL_PORT', 8420],
    ['WAYBILL_DISPATCHER_PORT', 8421],
  ]) {
    const port = Number(process.env[setting] || fallback);
    if (port !== 0 && !(await isPortFree(host, port))) taken.push({ setting, port });
  }
  if (taken.length === 0) return;
  const ports = taken.map(({ port }) => port).join(' and ');
  const others = taken.map(({ setting, port }) => `${setting}=${port + 100}`).join(' ');
  throw new Error(
    `Port ${ports} ${taken.length > 1 ? 'are' : 'is'} in use. Is something else running there? Other ports: ${others} npm start (0 lets the system pick)`,
  );
}

/** Before anything is touched: a wrong setting is told once, here, and not by each app. */
async function requireGoodSettings() {
  const { readConfig } = await import('../dist/libs/runtime/index.js');
  const { createKeyring } = await import('../dist/libs/secrets/index.js');
  const config = readConfig({
    ...process.env,
    DATABASE_URL: process.env.DATABASE_URL || 'postgresql://embedded',
  });
  if (!makesKey) createKeyring(config.encryptionKeys);
}

async function openDatabase() {
  if (!embedded) return { url: process.env.DATABASE_URL, shown: 'the PostgreSQL of DATABASE_URL' };
  const { startEmbeddedPostgres } = await import('../dist/libs/runtime/index.js');
  const dataDir = join(HOME, 'postgres');
  const server = await startEmbeddedPostgres({ dataDir });
  running.push({ name: 'PostgreSQL', stop: server.stop });
  void server.exited.then(() =>
    stopAll(1, paint.red(`PostgreSQL is gone; its log is ${shortPath(`${dataDir}.log`)}`)),
  );
  // Differs where the account that runs PostgreSQL cannot reach our folder.
  const real = realpathSync(dataDir);
  const elsewhere = real === realpathSync(HOME) + sep + 'postgres' ? '' : ` in ${real}`;
  return { url: server.url, shown: `${shortPath(dataDir)} (embedded PostgreSQL${elsewhere})` };
}

async function prepareDatabase(databaseUrl) {
  const { explainFailure, migrate } = await import('../dist/libs/runtime/index.js');
  const { bootstrapTenant } = await import('../dist/libs/tenants/index.js');
  const directUrl = process.env.WAYBILL_DIRECT_DATABASE_URL || databaseUrl;
  const made = await migrate(directUrl)
    .then(() => bootstrapTenant(directUrl, process.env.WAYBILL_ENV || undefined))
    .catch((error) => {
      throw new Error(`Waybill does not start: ${explainFailure(error)}`, { cause: error });
    });
  if (!embedded) return made?.key ?? (process.env.WAYBILL_KEY || null);
  if (made) keepAdminKey(KEY_FILE, made.key);
  return readAdminKey(KEY_FILE);
}

/** A developer need do nothing: the key is made once, and kept beside the data. */
async function prepareEncryptionKey(databaseUrl) {
  const { createPool } = await import('../dist/libs/runtime/index.js');
  const { isSealedInto } = await import('../dist/libs/secrets/index.js');
  await keepEncryptionKey(ENCRYPTION_KEY_FILE, async () => {
    const pool = createPool({
      url: databaseUrl,
      role: null,
      max: 1,
      applicationName: 'waybill-start',
      statementTimeoutMs: 10_000,
      lockTimeoutMs: 2_000,
      onIdleError: () => undefined,
    });
    try {
      return await isSealedInto(pool);
    } finally {
      await pool.end();
    }
  });
}

function embeddedSettings() {
  return {
    ...(makesKey ? { WAYBILL_ENCRYPTION_KEY_FILE: ENCRYPTION_KEY_FILE } : {}),
    WAYBILL_EGRESS_ALLOW: process.env.WAYBILL_EGRESS_ALLOW ?? '127.0.0.0/8,[::1]/128,localhost',
    WAYBILL_ALLOW_HTTP: process.env.WAYBILL_ALLOW_HTTP ?? 'true',
  };
}

async function startApps(env) {
  const apps = ['api', 'dispatcher'].map((name) => {
    const app = startApp({
      name,
      entry: join(ROOT, 'dist', 'apps', name, 'src', 'main.js'),
      cwd: ROOT,
      env,
      logPath: embedded ? join(HOME, 'log', `${name}.log`) : null,
      onLine: (line) => {
        const shown = stopping ? null : compactLine(name, line, paint);
        if (shown) print(shown);
      },
    });
    return app;
  });
  running.push({
    name: 'the apps',
    stop: () => stopApps(apps),
    kill: () => apps.forEach((app) => app.kill()),
  });
  for (const app of apps) {
    void app.exited.then((end) =>
      stopAll(
        1,
        paint.red(
          `${app.describeEnd(end)}\nEverything is stopped now; nothing is lost. Start again: npm start`,
        ),
      ),
    );
  }
  await Promise.all(apps.map((app) => app.ready));
  return apps;
}

async function stopApps(apps) {
  const inTime = await Promise.all(apps.map((app) => app.stop(STOP_MS)));
  apps.forEach((app, index) => {
    if (!inTime[index])
      print(paint.red(`${app.name} did not stop within ${STOP_MS / 1000} s and was killed`));
  });
}

function whereabouts(database, env) {
  const logs = embedded
    ? ['api', 'dispatcher'].map((name) => shortPath(join(HOME, 'log', `${name}.log`))).join(', ')
    : 'standard output';
  const notes = [];
  if (embedded && env.WAYBILL_ALLOW_HTTP === 'true') {
    notes.push(
      `Deliveries to http:// on this machine are allowed (${env.WAYBILL_EGRESS_ALLOW}): the embedded developer default.`,
    );
  }
  if (!embedded && !receivesHere(env)) {
    notes.push(`To receive on this machine, as the commands below do, start with ${LOOPBACK_HINT}.`);
  }
  return { data: database.shown, logs, notes };
}

/** Whether a receiver on this machine can be registered: the embedded default says yes, a real set-up must. */
function receivesHere(env) {
  return env.WAYBILL_ALLOW_HTTP === 'true' && (env.WAYBILL_EGRESS_ALLOW ?? '').includes('127.0.0.');
}

async function demonstrate(apiUrl, key, once) {
  if (!embedded && !receivesHere(process.env))
    throw new Error(`The demo receives on this machine: start it with ${LOOPBACK_HINT}`);
  if (!key)
    throw new Error(
      'The demo needs the admin key, which was shown at the first start: pass it as WAYBILL_KEY',
    );
  const { runDemo } = await import('./launch/demo.mjs');
  const complete = await runDemo({ apiUrl, key, paint, print, onReceiver: willStop });
  if (once) await stopAll(complete ? 0 : 1, '');
}

function willStop(part) {
  running.push(part);
}

/** Stops what runs, newest first, then ends this process with `code`. Later calls change nothing. */
function stopAll(code, message) {
  stopping ??= (async () => {
    if (message) print(message);
    await Promise.all([starting, stopEach()]);
    await stopEach();
    process.exit(code);
  })();
  return stopping;
}

async function stopEach() {
  while (running.length > 0) {
    const { name, stop } = running.pop();
    try {
      await stop();
    } catch (error) {
      print(paint.red(`${name} did not stop cleanly: ${error.message}`));
    }
  }
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: { demo: { type: 'boolean' }, once: { type: 'boolean' }, help: { type: 'boolean' } },
    });
    if (values.once && !values.demo) throw new Error('--once belongs to --demo');
    if (values.help) {
      process.stdout.write(HELP);
      process.exit(0);
    }
    return values;
  } catch (error) {
    process.stderr.write(`${error.message}\n${HELP}`);
    return process.exit(2);
  }
}
