// One discovery step among 100k endpoints of one row each, 200 of them due.
import { discover } from './support/product.mjs';
import { createQueuePool, timed } from './support/queue-pool.mjs';
import { quantile } from './support/report.mjs';
import { seedBacklog, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = { endpoints: 100_000, tenants: 100, due: 200, steps: 500 };
const SMOKE = { endpoints: 500, tenants: 5, due: 20, steps: 20 };
const HOUR_MS = 3_600_000;
const URL_NOBODY_CALLS = 'http://127.0.0.1:9/hook';

/** `npm run bench -- discover` */
export async function bench({ postgres, smoke }) {
  const size = smoke ? SMOKE : FULL;
  const database = await postgres.createDatabase();
  const db = database.pool;
  const tenantIds = await seedTenants(db, size.tenants);
  const endpoints = await seedEndpoints(db, { tenantIds, count: size.endpoints, urls: [URL_NOBODY_CALLS] });
  // The due ones lie all over: every so many-th endpoint.
  const due = endpoints.filter((_, place) => place % (size.endpoints / size.due) === 0);
  await seedBacklog(db, { endpoints: due, count: due.length });
  const later = endpoints.filter((endpoint) => !due.includes(endpoint));
  await seedBacklog(db, { endpoints: later, count: later.length, dueInMs: HOUR_MS });
  await settleTables(db);
  const queue = createQueuePool(database.url);
  const found = await discover(queue, { lookBackMs: HOUR_MS });
  if (found.length !== size.due) throw new Error(`discovery found ${found.length} of ${size.due} endpoints`);
  const tookMs = await timed(size.steps, () => discover(queue, { lookBackMs: HOUR_MS }));
  await queue.end();
  await database.drop();
  return {
    ratios: { step_ms: quantile(tookMs, 0.5) },
    absolute: { step_p99_ms: quantile(tookMs, 0.99), endpoints: size.endpoints, due: size.due },
  };
}
