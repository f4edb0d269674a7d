import type { Queryable } from './database.js';

/** `waybill_producer` is for the sessions of those who emit events in SQL: no process of ours takes it. */
const ROLES: readonly string[] = [
  'waybill_owner',
  'waybill_app',
  'waybill_intake',
  'waybill_dispatcher',
  'waybill_operator',
  'waybill_producer',
];

/**
 * Roles belong to the whole server, so two databases that are migrated at once may make the same one: whoever comes
 * second finds it made. Who makes a role may not always take it (PostgreSQL 16), so each is granted to its maker.
 */
const PREPARE_ROLE = `
do $$
begin
  if not exists (select from pg_roles where rolname = '%ROLE%') then
    create role %ROLE% nologin noinherit;
  end if;
exception when duplicate_object or unique_violation then
  null;
end
$$;
do $$
begin
  if not pg_has_role(session_user, '%ROLE%', 'member') then
    execute format('grant %ROLE% to %I', session_user);
  end if;
exception when duplicate_object or unique_violation then
  null;
end
$$;
`;

/** Everything in the schema belongs to waybill_owner, also what was made before there was one. */
const OWN_SCHEMA = `
do $$
declare
  thing record;
begin
  create schema if not exists waybill;
  if (select nspowner from pg_namespace where nspname = 'waybill') <> 'waybill_owner'::regrole then
    alter schema waybill owner to waybill_owner;
  end if;
  for thing in
    select format('alter table %s owner to waybill_owner', c.oid::regclass) as own
    from pg_class c
    where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relowner <> 'waybill_owner'::regrole
    union all
    select format('alter function %s owner to waybill_owner', p.oid::regprocedure)
    from pg_proc p
    where p.pronamespace = 'waybill'::regnamespace and p.proowner <> 'waybill_owner'::regrole
  loop
    execute thing.own;
  end loop;
end
$$;
`;

/**
 * Makes the roles of docs/reference/roles.md that the server lacks, lets the current login take them, and gives the
 * schema to waybill_owner. Needs CREATEROLE only where a role is missing or not granted. Run under the lock of migrate.
 */
export async function prepareRoles(db: Queryable): Promise<void> {
  for (const role of ROLES) await db.query({ text: PREPARE_ROLE.replaceAll('%ROLE%', role) });
  await db.query({ text: OWN_SCHEMA });
}
