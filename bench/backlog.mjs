// What a claim costs at one million and at five million due rows, and the dispatcher's memory beside a million.
import { setTimeout as delay } from 'node:timers/promises';
import { startApp } from './support/child.mjs';
import { residentMb } from './support/measure-cpu.mjs';
import { claim } from './support/product.mjs';
import { createQueuePool, timed } from './support/queue-pool.mjs';
import { startReceiver } from './support/receiver.mjs';
import { quantile } from './support/report.mjs';
import { seedBacklog, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = {
  million: 1_000_000,
  seedAtOnce: 500_000,
  tenants: 20,
  endpoints: 1_000,
  claims: 400,
  memoryMs: 20_000,
};
const SMOKE = { million: 1_000, seedAtOnce: 2_000, tenants: 4, endpoints: 64, claims: 6, memoryMs: 200 };
const ENDPOINTS_A_CLAIM = 16;
const ROWS_AN_ENDPOINT = 8;
const LOOK_MS = 100;

/** `npm run bench -- backlog` */
export async function bench({ postgres, smoke }) {
  const size = smoke ? SMOKE : FULL;
  const database = await postgres.createDatabase();
  const db = database.pool;
  const receiver = await startReceiver();
  const tenantIds = await seedTenants(db, size.tenants);
  const endpoints = await seedEndpoints(db, {
    tenantIds,
    count: size.endpoints,
    urls: await receiver.open(64),
  });
  await seed(db, endpoints, size.million, size);
  const atOneMillion = await measureClaims(database.url, endpoints, size);
  const memory = await measureMemory(database.url, receiver, size);
  await seed(db, endpoints, 4 * size.million, size, true);
  const atFiveMillion = await measureClaims(database.url, endpoints, size);
  await receiver.stop();
  await database.drop();
  const p50 = [quantile(atOneMillion, 0.5), quantile(atFiveMillion, 0.5)];
  return {
    ratios: { claim_5m_vs_1m: p50[1] / p50[0], rss_mb: memory.peakMb },
    absolute: {
      claim_1m_p50_ms: p50[0],
      claim_1m_p99_ms: quantile(atOneMillion, 0.99),
      claim_5m_p50_ms: p50[1],
      claim_5m_p99_ms: quantile(atFiveMillion, 0.99),
      rows_a_claim: ENDPOINTS_A_CLAIM * ROWS_AN_ENDPOINT,
      delivered_beside_1m: memory.delivered,
    },
  };
}

async function seed(db, endpoints, count, { seedAtOnce }, queueOnly = false) {
  for (let left = count; left > 0; left -= seedAtOnce) {
    await seedBacklog(db, { endpoints, count: Math.min(left, seedAtOnce), payloadBytes: 100, queueOnly });
  }
  await settleTables(db);
  await db.query('checkpoint');
}

/** Claims as the scheduler does: some endpoints at a time, in turn, each from where its last claim ended. */
async function measureClaims(url, endpoints, { claims }) {
  const queue = createQueuePool(url);
  const known = endpoints.map((endpoint) => ({ ...endpoint, watermarkMs: 0 }));
  const byId = new Map(known.map((endpoint) => [endpoint.id, endpoint]));
  const tookMs = await timed(claims, async (time) => {
    const start = (time * ENDPOINTS_A_CLAIM) % known.length;
    const chosen = known.slice(start, start + ENDPOINTS_A_CLAIM);
    const deliveries = await claim(queue, chosen, ROWS_AN_ENDPOINT);
    if (deliveries.length < chosen.length) throw new Error(`a claim took ${deliveries.length} rows only`);
    for (const { endpointId, dueAtMs } of deliveries) {
      const endpoint = byId.get(endpointId);
      endpoint.watermarkMs = Math.max(endpoint.watermarkMs, Math.floor(dueAtMs));
    }
  });
  await queue.end();
  // The first ones plan and fill the caches.
  return tookMs.slice(Math.ceil(claims / 8));
}

async function measureMemory(url, receiver, { memoryMs }) {
  await receiver.reset();
  const dispatcher = await startApp('dispatcher', url);
  const until = performance.now() + memoryMs;
  let peakMb = 0;
  while (performance.now() < until || (await receiver.arrivals()).count === 0) {
    peakMb = Math.max(peakMb, residentMb(dispatcher.pid));
    await delay(LOOK_MS);
  }
  const { count } = await receiver.arrivals();
  await dispatcher.stop();
  return { peakMb, delivered: count };
}
