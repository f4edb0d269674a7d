import type { Queryable } from './database.js';

/**
 * The schema `waybill` as text, from the catalogue: tables with columns, constraints, indexes, policies and grants, then
 * functions.
 * Day partitions are left out (they come and go), and so is the migrations' own table.
 */
const DESCRIBE_TABLES = `
select c.relname as name,
  'create table waybill.' || c.relname || E' (\\n' || (
    select string_agg('  ' || line, E',\\n' order by kind, place, line)
    from (
      select 1 as kind, a.attnum as place,
        a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
          || case when a.attnotnull then ' not null' else '' end
          || case a.attgenerated
               when 's' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
               else coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
             end as line
      from pg_attribute a
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      union all
      select 2, 0, 'constraint ' || k.conname || ' ' || pg_get_constraintdef(k.oid)
      from pg_constraint k
      where k.conrelid = c.oid and k.contype <> 'n'
    ) lines
  ) || E'\\n)'
  || case when c.relkind = 'p' then ' partition by ' || pg_get_partkeydef(c.oid) else '' end
  || coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') || ';'
  || coalesce((
    select string_agg(E'\\n' || pg_get_indexdef(i.indexrelid) || ';', '' order by x.relname)
    from pg_index i
    join pg_class x on x.oid = i.indexrelid
    where i.indrelid = c.oid
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.conrelid = c.oid)
  ), '')
  || case when c.relrowsecurity then E'\\nalter table waybill.' || c.relname || ' enable row level security'
       || case when c.relforcerowsecurity then ', force row level security' else '' end || ';' else '' end
  || coalesce((
    select string_agg(E'\\ncreate policy ' || p.policyname || ' on waybill.' || p.tablename || ' for ' || lower(p.cmd)
      || ' to ' || (select string_agg(role::text, ', ' order by role) from unnest(p.roles) role)
      || coalesce(E'\\n  using ' || p.qual, '') || coalesce(E'\\n  with check ' || p.with_check, '') || ';', '' order by p.policyname)
    from pg_policies p
    where p.schemaname = 'waybill' and p.tablename = c.relname
  ), '')
  || coalesce((
    select string_agg(E'\\ngrant ' || privileges || ' on waybill.' || c.relname || ' to ' || grantee || ';', '' order by grantee, privileges)
    from (
      select grantee, string_agg(privilege, ', ' order by privilege) as privileges
      from (
        select a.grantee::regrole::text as grantee, lower(a.privilege_type) as privilege
        from aclexplode(c.relacl) a
        where a.grantee <> c.relowner
        union all
        select a.grantee::regrole::text, lower(a.privilege_type) || ' (' || string_agg(t.attname, ', ' order by t.attnum) || ')'
        from pg_attribute t, aclexplode(t.attacl) a
        where t.attrelid = c.oid and t.attnum > 0
        group by a.grantee, a.privilege_type
      ) granted
      group by grantee
    ) g
  ), '') as text
from pg_class c
where c.relnamespace = 'waybill'::regnamespace
  and c.relkind in ('r', 'p')
  and not c.relispartition
  and c.relname <> 'migrations'
order by c.relname
`;

const DESCRIBE_FUNCTIONS = `
select pg_get_functiondef(p.oid) || ';' || coalesce((
    select string_agg(E'\\ngrant execute on function ' || p.oid::regprocedure || ' to ' || grantee || ';', '' order by grantee)
    from (
      select case a.grantee when 0 then 'public' else a.grantee::regrole::text end as grantee
      from aclexplode(p.proacl) a
      where a.grantee <> p.proowner
    ) g
  ), '') as text
from pg_proc p
where p.pronamespace = 'waybill'::regnamespace
order by p.proname, pg_get_function_identity_arguments(p.oid)
`;

/** Gives the schema as it stands in a database, in one fixed order: equal text means equal schema. */
export async function describeSchema(db: Queryable): Promise<string> {
  const tables = await db.query<{ text: string }>({ text: DESCRIBE_TABLES });
  const functions = await db.query<{ text: string }>({ text: DESCRIBE_FUNCTIONS });
  const parts = [...tables.rows, ...functions.rows].map(({ text }) =>
    text.replaceAll(/[ \t]+$/gm, '').trim(),
  );
  return `${parts.join('\n\n')}\n`;
}
