// Light load: ten events a second, from the 201 that says "committed" to the arrival at the receiver.
import { startApp } from './support/child.mjs';
import { startProbe } from './support/probe.mjs';
import { firstTenant } from './support/product.mjs';
import { quantile } from './support/report.mjs';
import { seedEndpoints } from './support/seed.mjs';

const FULL = { perSecond: 10, ms: 30_000, warmUpMs: 2_000, patienceMs: 10_000 };
const SMOKE = { perSecond: 50, ms: 300, warmUpMs: 100, patienceMs: 5_000 };

/** `npm run bench -- latency` */
export async function bench({ postgres, smoke }) {
  const { warmUpMs, ...load } = smoke ? SMOKE : FULL;
  const database = await postgres.createDatabase();
  const { tenantId, key } = await firstTenant(database.url);
  const probe = await startProbe();
  await seedEndpoints(database.pool, {
    tenantIds: [tenantId],
    count: 1,
    urls: [probe.url],
    subscribed: true,
  });
  const [api, dispatcher] = await Promise.all([
    startApp('api', database.url),
    startApp('dispatcher', database.url),
  ]);
  await probe.publish({ apiUrl: api.url, key, ...load, ms: warmUpMs });
  const waitedMs = await probe.publish({ apiUrl: api.url, key, ...load });
  await Promise.all([api.stop(), dispatcher.stop()]);
  await probe.stop();
  await database.drop();
  return {
    ratios: { p50_ms: quantile(waitedMs, 0.5), p99_ms: quantile(waitedMs, 0.99) },
    absolute: { max_ms: Math.max(...waitedMs), events: waitedMs.length },
  };
}
