// pg-boss 10, bare: loops that fetch a batch, sign and send it, and complete it. Nothing else is recorded. Every fetch
// sorts all that waits, so it takes large batches to get anywhere: 32 at a time gave 440 deliveries/s, 512 ten times that.
import pg from 'pg';
import PgBoss from 'pg-boss';
import { answer } from '../support/answer.mjs';
import { BACKLOG_JOBS, requestOf } from './backlog-jobs.mjs';
import { sendSigned } from './send-signed.mjs';

const QUEUE = 'deliver';
const LOOPS = 2;
const FETCH_AT_ONCE = 512;
const INSERT_AT_ONCE = 5_000;

let boss;

answer({
  prepare: async ({ databaseUrl }) => {
    boss = new PgBoss({ connectionString: databaseUrl, max: 10, supervise: false, schedule: false });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue(QUEUE);
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    const { rows } = await client.query(BACKLOG_JOBS);
    while (rows.length > 0) {
      await boss.insert(rows.splice(0, INSERT_AT_ONCE).map(({ job }) => ({ name: QUEUE, data: job })));
    }
    await client.query('vacuum (analyze) pgboss.job');
    await client.end();
  },
  go: ({ inFlight }) => {
    for (let loop = 0; loop < LOOPS; loop += 1) void workOn(Math.ceil(inFlight / LOOPS));
  },
});

async function workOn(inFlight) {
  for (;;) {
    const jobs = await boss.fetch(QUEUE, { batchSize: FETCH_AT_ONCE, priority: false });
    if (jobs.length === 0) return;
    const ids = jobs.map((job) => job.id);
    await Promise.all(Array.from({ length: inFlight }, () => sendOn(jobs)));
    await boss.complete(QUEUE, ids);
  }
}

async function sendOn(jobs) {
  for (let job = jobs.pop(); job !== undefined; job = jobs.pop()) await sendSigned(requestOf(job.data));
}
