// Accepting events of a type to which 1,000 endpoints with filters are subscribed, beside one to which nobody is:
// milliseconds of database time for a statement of one event, and for one of 128.
import { accept, compileFilter } from './support/product.mjs';
import { createQueuePool } from './support/queue-pool.mjs';
import { printTable } from './support/report.mjs';
import { EVENT_TYPE, seedEndpoints, seedTenants, settleTables } from './support/seed.mjs';

const FULL = { endpoints: 1_000, batch: 128, statements: 40 };
const SMOKE = { endpoints: 20, batch: 8, statements: 3 };
const URL_NOBODY_CALLS = 'http://127.0.0.1:9/hook';
const PAYLOAD = JSON.stringify({
  event: EVENT_TYPE,
  order: { id: 4711, total: 99.5, currency: 'EUR', tags: ['b2b', 'express'] },
  text: 'waybill '.repeat(24),
});
/** One in a hundred endpoints lets the payload through; each has three conditions. */
const filterOf = (place) => ({
  'order.total': { $gte: place % 100 === 0 ? 50 : 100 + place },
  'order.currency': { $in: ['EUR', 'CHF', 'SEK'] },
  $or: [{ 'order.tags': 'express' }, { 'order.priority': { $exists: true } }],
});
const STATEMENTS = `
select total_exec_time / calls as ms from pg_stat_statements
where dbid = (select oid from pg_database where datname = current_database()) and query like '%insert into waybill.events%'`;

/** `npm run bench -- match` */
export async function bench({ postgres, smoke }) {
  const size = smoke ? SMOKE : FULL;
  const database = await postgres.createDatabase();
  const db = database.pool;
  const [tenantId] = await seedTenants(db, 1);
  const endpoints = await seedEndpoints(db, {
    tenantIds: [tenantId],
    count: size.endpoints,
    urls: [URL_NOBODY_CALLS],
    subscribed: true,
  });
  const filters = endpoints.map((_, place) => compileFilter(filterOf(place)));
  await db.query(
    `update waybill.endpoints p set filter = f.filter::jsonb, filter_path = f.path::jsonpath
     from unnest($1::uuid[], $2::text[], $3::text[]) as f (id, filter, path) where p.id = f.id`,
    [
      endpoints.map(({ id }) => id),
      filters.map(({ filter }) => JSON.stringify(filter)),
      filters.map(({ path }) => path),
    ],
  );
  await settleTables(db);
  const queue = createQueuePool(database.url);
  const run = async (eventType, count) => {
    const events = Array.from({ length: count }, () => ({
      tenantId,
      eventType,
      payload: Buffer.from(PAYLOAD),
    }));
    await accept(queue, events);
    await db.query('select pg_stat_statements_reset()');
    for (let statement = 0; statement < size.statements; statement += 1) await accept(queue, events);
    return (await db.query(STATEMENTS)).rows[0].ms;
  };
  const one = { filtered: await run(EVENT_TYPE, 1), bare: await run('nobody.wants.this', 1) };
  const batch = {
    filtered: await run(EVENT_TYPE, size.batch),
    bare: await run('nobody.wants.this', size.batch),
  };
  await queue.end();
  await database.drop();
  printTable(`match: ms of database time a statement, ${size.endpoints} endpoints with filters`, [
    { events: 1, filtered: one.filtered, bare: one.bare },
    { events: size.batch, filtered: batch.filtered, bare: batch.bare },
  ]);
  return {
    ratios: {
      one_ms: one.filtered - one.bare,
      batch_ms: batch.filtered - batch.bare,
      pair_us: ((batch.filtered - batch.bare) * 1000) / (size.batch * size.endpoints),
    },
    absolute: {
      endpoints: size.endpoints,
      batch: size.batch,
      bare_one_ms: one.bare,
      bare_batch_ms: batch.bare,
    },
  };
}
