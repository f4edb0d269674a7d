import { withTransaction, type Database } from './database.js';

/**
 * Rows carry the time at which their transaction began, so one that is still open may yet add rows behind others that are
 * shown already. Who is not allowed to see when another login's transaction began still sees in pg_locks that one is open:
 * then nothing can be said, nor while a transaction stands prepared. PostgreSQL's own workers have no login and write nothing of ours. A session publishes its start
 * a moment after it took the time: a second is far beyond that.
 */
const READ_SETTLED_UNTIL = `
with other as (
  select a.xact_start, exists (select from pg_locks l where l.pid = a.pid and l.locktype = 'virtualxid') as is_open
  from pg_stat_activity a
  where a.datid = (select oid from pg_database where datname = current_database())
    and a.usesysid is not null
    and a.pid <> pg_backend_pid()
)
select
  case when not coalesce(bool_or(xact_start is null and is_open), false)
    and not exists (select from pg_prepared_xacts where database = current_database())
  then
    date_trunc('milliseconds', least(now(), min(xact_start)) - interval '1 second')
  end as settled_until
from other
`;

/**
 * A time up to which everything is committed that any transaction will ever have stored under it: whoever reads after this
 * has resolved sees all of it. Null when that cannot be told. Asks as the login itself, whose sessions all processes share.
 */
export async function readSettledUntil(pool: Database): Promise<Date | null> {
  return withTransaction(pool, async (tx) => {
    await tx.query({ text: 'set local role none' });
    const { rows } = await tx.query<{ settled_until: Date | null }>({ text: READ_SETTLED_UNTIL });
    return rows[0]!.settled_until;
  });
}
