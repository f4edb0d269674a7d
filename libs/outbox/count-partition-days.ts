import type { Queryable } from '#runtime';

/** Days from today on, without a gap, for which all three partitions stand and are attached. */
const COUNT_PARTITION_DAYS = `
with standing as (
  select right(c.relname, 8) as day
  from pg_inherits i
  join pg_class c on c.oid = i.inhrelid
  where i.inhparent in ('waybill.events'::regclass, 'waybill.deliveries'::regclass, 'waybill.attempts'::regclass)
  group by 1
  having count(*) = 3
),
gap as (
  select min(ahead) as ahead
  from generate_series(0, $1::integer) as ahead
  where to_char((now() at time zone 'UTC')::date + ahead, 'YYYYMMDD') not in (select day from standing)
)
select coalesce(ahead, $1::integer) as days from gap
`;

/** Looking further ahead than this tells nobody anything. */
const DAYS_MAX = 60;

/** For how many days, today's included, the day partitions stand; 0 means that nothing can be accepted now. */
export async function countPartitionDays(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ days: number }>({ text: COUNT_PARTITION_DAYS, values: [DAYS_MAX] });
  return rows[0]!.days;
}
