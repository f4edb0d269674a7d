import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from './app-error.js';
import { sqlState, type Queryable } from './database.js';

/** `waybill_producer` is for the sessions of those who emit events in SQL: no process of ours takes it. */
const ROLES: readonly string[] = [
  'waybill_owner',
  'waybill_app',
  'waybill_intake',
  'waybill_dispatcher',
  'waybill_operator',
  'waybill_producer',
];

/** From PostgreSQL 16 on whoever makes a role may not take it yet, so it is granted to its maker. */
const PREPARE_ROLE = `
do $$
begin
  if not exists (select from pg_roles where rolname = '%ROLE%') then
    create role %ROLE% nologin noinherit;
  end if;
  if not pg_has_role(session_user, '%ROLE%',
    case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end) then
    execute format('grant %ROLE% to %I', session_user);
  end if;
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

const INSUFFICIENT_PRIVILEGE = '42501';

const READ_LACKS = `
select quote_ident(session_user) as login, array(
  select role from unnest($1::text[]) role where not exists (select from pg_roles where rolname = role)
) as missing
`;

/** What an administrator has to run where the login itself may not. */
async function adviceFor(db: Queryable, { message }: Error): Promise<string> {
  const { rows } = await db.query<{ login: string; missing: string[] }>({
    text: READ_LACKS,
    values: [ROLES],
  });
  const { login, missing } = rows[0]!;
  const statements = [
    ...missing.map((role) => `create role ${role} nologin noinherit;`),
    `grant ${ROLES.join(', ')} to ${login};`,
  ];
  return (
    `The login ${login} may not prepare this server (${message}). Let an administrator run this once, then try again:` +
    statements.map((statement) => `\n  ${statement}`).join('')
  );
}

/**
 * Makes the roles of docs/reference/roles.md that the server lacks, lets the current login take them, and gives the
 * schema to waybill_owner. Needs CREATEROLE only where a role is missing or not granted. Run under the lock of migrate.
 */
export async function prepareRoles(db: Queryable): Promise<void> {
  try {
    for (const role of ROLES) await prepareRole(db, role);
    await db.query({ text: OWN_SCHEMA });
  } catch (error) {
    if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new AppError('database_role_unavailable', await adviceFor(db, error as Error), { cause: error });
  }
}

/**
 * Roles belong to the whole server, and no lock of ours reaches beyond a database: of two that make the same role at once
 * one finds it there already, or not there yet though it is, or changed under its hands.
 */
const RACES = new Set(['42710', '23505', '42704', 'XX000']);
const TRIES_MAX = 20;
const TRY_AGAIN_MS = 50;

async function prepareRole(db: Queryable, role: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await db.query({ text: PREPARE_ROLE.replaceAll('%ROLE%', role) });
      return;
    } catch (error) {
      if (!RACES.has(sqlState(error) ?? '') || tries === TRIES_MAX) throw error;
      await delay(TRY_AGAIN_MS);
    }
  }
}
