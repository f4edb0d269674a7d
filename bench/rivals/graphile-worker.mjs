// graphile-worker 0.17 with its batching on. Bare, its task signs and sends; with BENCH_RECORD=1 it also writes the
// attempt and the delivery's state, one statement a job.
import { Logger, run, runMigrations } from 'graphile-worker';
import pg from 'pg';
import { answer } from '../support/answer.mjs';
import { BACKLOG_JOBS, requestOf } from './backlog-jobs.mjs';
import { recordAttempt } from './record-attempt.mjs';
import { sendSigned } from './send-signed.mjs';

const ADD_JOBS = `
select count(*) from graphile_worker.add_jobs(array(
  select row('deliver', job, null, due_at, 1, null, 0, null)::graphile_worker.job_spec from (${BACKLOG_JOBS}) backlog))`;

const record = process.env.BENCH_RECORD === '1';
const logger = new Logger(() => () => undefined);
let pool;

answer({
  prepare: async ({ databaseUrl }) => {
    pool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
    await runMigrations({ pgPool: pool, logger });
    await pool.query(ADD_JOBS);
    await pool.query('vacuum (analyze) graphile_worker._private_jobs');
  },
  go: async ({ inFlight }) => {
    await run({
      pgPool: pool,
      logger,
      noHandleSignals: true,
      taskList: { deliver },
      preset: {
        worker: {
          concurrentJobs: inFlight,
          localQueue: { size: 2 * inFlight },
          completeJobBatchDelay: 5,
          failJobBatchDelay: 5,
        },
      },
    });
  },
});

async function deliver(job) {
  const startedAtMs = Date.now();
  const status = await sendSigned(requestOf(job));
  if (record) await recordAttempt(pool, job, { status, startedAtMs, durationMs: Date.now() - startedAtMs });
}
