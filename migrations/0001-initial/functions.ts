/** Ids are immutable functions of a time, another id, or a random parameter: a write calls nothing volatile. */
export const IDS = `
-- A UUIDv7 whose millisecond is the given time and whose other bits are those of a random (version 4) uuid.
create function waybill.event_id(at timestamptz, random uuid) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7'
  || substr(replace(random::text, '-', ''), 14))::uuid;

-- The lowest id of a millisecond: partition bounds and look-ups by range.
create function waybill.id_floor(at timestamptz) returns uuid
language sql immutable strict parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The id that (parent, child) always gives; it keeps the parent's millisecond, so that a look-up by it reads
-- one partition. A delivery's id is derived from (event, endpoint).
create function waybill.derived_id(parent uuid, child uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(parent::text, '-', ''), 1, 12) || '7'
  || substr(encode(sha256(uuid_send(parent) || uuid_send(child)), 'hex'), 1, 3) || '8'
  || substr(encode(sha256(uuid_send(parent) || uuid_send(child)), 'hex'), 4, 15))::uuid;

-- Lowest and highest id that share this id's millisecond.
create function waybill.first_of_millisecond(id uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(id::text, '-', ''), 1, 12) || repeat('0', 20))::uuid;

create function waybill.last_of_millisecond(id uuid) returns uuid
language sql immutable strict parallel safe
return (substr(replace(id::text, '-', ''), 1, 12) || repeat('f', 20))::uuid;
`;

/** Which event types a subscription's entry means. */
export const MATCHING = `
-- A subscription entry is dot-separated segments. \`*\` is one segment or, as the last, one or more of the rest:
-- payment.* matches payment.a and payment.a.b, never payment. No regular expression is involved.
create function waybill.event_type_matches(pattern text, event_type text) returns boolean
language plpgsql immutable strict parallel safe as $$
declare
  wanted text[] := string_to_array(pattern, '.');
  given text[] := string_to_array(event_type, '.');
  segments integer := cardinality(wanted);
  open_ended boolean := wanted[segments] = '*';
begin
  if cardinality(given) < segments or (cardinality(given) > segments and not open_ended) then
    return false;
  end if;
  for place in 1..segments loop
    if wanted[place] <> '*' and wanted[place] <> given[place] then
      return false;
    end if;
  end loop;
  return true;
end
$$;
`;

/**
 * Day partitions are made as \`create table like\` and then attached: \`create … partition of\` behind an open
 * producer transaction stopped all inserts for 3 s. There is no default partition: a day nobody made is an error,
 * not a silent heap.
 */
export const PARTITIONS = `
create function waybill.create_day_partitions(first_day date, days integer) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
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
`;
