import { afterEach, beforeEach, expect, it } from 'vitest';

import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type PgProxy, startPgProxy } from '../support/pg-proxy.js';
import { openPlatform, type Platform, type ShownEvent, untilHealth } from '../support/platform.js';
import { waitFor } from '../support/wait-for.js';

const SUBMITS = 50;
const ACCEPT = 'insert into waybill.idempotency_keys';

let database: TestDatabase;
let proxy: PgProxy;
let platform: Platform;
beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await startPgProxy(database.url);
  platform = await openPlatform({ database, appDatabaseUrl: proxy.url });
});
afterEach(async () => {
  await platform.close();
  await proxy.close();
  await database.drop();
});

it('[H23] an api that is told to stop turns red first and answers every open submit, truthfully', async () => {
  const api = await platform.bootApi();
  const fault = proxy.on(ACCEPT, { moment: 'before', action: 'swallow', times: Infinity });
  const submits = Array.from({ length: SUBMITS }, (_, order) =>
    platform.client.publish<ShownEvent>('order.created', { order }),
  );
  let answersSoFar = 0;
  const answered = Promise.all(submits.map((submit) => submit.finally(() => (answersSoFar += 1))));
  // A test that fails before it asks for them must not leave these rejections to nobody.
  answered.catch(() => undefined);
  const open = async (): Promise<number> => {
    const text = await (await fetch(new URL('/metrics', api.url))).text();
    return Number(/^waybill_http_requests_open (\d+)$/m.exec(text)?.[1]);
  };
  // The one more is the scrape itself.
  await waitFor(async () => (await open()) === SUBMITS + 1, { what: `${SUBMITS} open submits` });
  await waitFor(() => fault.held > 0, { what: 'a statement under way' });

  api.process.kill('SIGTERM');
  await untilHealth(api, '/readyz', 503);
  // Red while everything is still open, and the port too.
  expect(api.process.exitCode).toBeNull();
  expect(fault.held).toBeGreaterThan(0);
  expect(answersSoFar).toBe(0);
  proxy.clearFaults();
  const answers = await answered;
  expect(await api.exited).toEqual({ code: 0, signal: null });

  const accepted = answers.filter(({ status }) => status === 201);
  expect(answers.map(({ status }) => status).filter((status) => ![201, 503].includes(status))).toEqual([]);
  expect(accepted.length).toBeGreaterThanOrEqual(10);
  const { rows } = await database.pool.query<{ id: string }>(
    `select 'evt_' || replace(id::text, '-', '') as id from waybill.events`,
  );
  const stored = rows.map(({ id }) => id);
  expect(stored).toEqual(expect.arrayContaining(accepted.map(({ body }) => body.id)));
  expect(stored).toHaveLength(accepted.length);
  await expect(platform.client.get('/healthz')).rejects.toThrow(/ECONNREFUSED/);
});
