/**
 * The apps make partitions ahead, and only the owner may: the function runs as its owner, takes a day and a number, and
 * reads no row. A partition is reached through its parent, whose policies and grants count; by its own name it has
 * row-level security without any policy, so it shows nobody anything.
 */
export const OWNED_PARTITIONS = `
create or replace function waybill.create_day_partitions(first_day date, days integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  parent text;
  day date;
  child text;
  made integer := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('waybill.create_day_partitions', 0));
  for step in 0..days - 1 loop
    day := first_day + step;
    foreach parent in array array['events', 'deliveries', 'attempts'] loop
      child := parent || '_' || to_char(day, 'YYYYMMDD');
      continue when to_regclass(format('waybill.%I', child)) is not null;
      execute format('create table waybill.%I (like waybill.%I including all)', child, parent);
      execute format('alter table waybill.%I enable row level security, force row level security', child);
      if parent = 'deliveries' then
        execute format('alter table waybill.%I set (fillfactor = 80)', child);
      end if;
      execute format(
        'alter table waybill.%I attach partition waybill.%I for values from (%L) to (%L)',
        parent, child,
        waybill.id_floor(day::timestamp at time zone 'UTC'),
        waybill.id_floor((day + 1)::timestamp at time zone 'UTC'));
      made := made + 1;
    end loop;
  end loop;
  return made;
end
$$;

do $$
declare
  child regclass;
begin
  for child in
    select inhrelid from pg_inherits
    where inhparent in ('waybill.events'::regclass, 'waybill.deliveries'::regclass, 'waybill.attempts'::regclass)
  loop
    execute format('alter table %s enable row level security, force row level security', child);
  end loop;
end
$$;
`;

/** Undone with the policies of their parents: without row-level security there, a partition needs none. */
export const OPEN_PARTITIONS = `
do $$
declare
  child regclass;
begin
  for child in
    select inhrelid from pg_inherits
    where inhparent in ('waybill.events'::regclass, 'waybill.deliveries'::regclass, 'waybill.attempts'::regclass)
  loop
    execute format('alter table %s no force row level security, disable row level security', child);
  end loop;
end
$$;
`;
