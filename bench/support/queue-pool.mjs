import pg from 'pg';

/** One connection that plans as the dispatcher's do: queue statements are planned once for all arrays. */
export function createQueuePool(url) {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    application_name: 'waybill-bench-queue',
    options: '-c plan_cache_mode=force_generic_plan -c timezone=UTC',
  });
  pool.on('error', () => undefined);
  return pool;
}

/** Runs `work` so many times and returns how many milliseconds each took. */
export async function timed(times, work) {
  const tookMs = [];
  for (let time = 0; time < times; time += 1) {
    const startedAt = performance.now();
    await work(time);
    tookMs.push(performance.now() - startedAt);
  }
  return tookMs;
}
