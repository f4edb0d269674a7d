import type { Command } from 'commander';
import { createHints, NIL_UUID, sweepEndpoints } from '#outbox';
import { formatId, parseId, readConfig, type Queryable } from '#runtime';
import { createTenant, deleteTenant, listTenants, suspendTenant, type Tenant } from '#tenants';
import { everyPage } from './every-page.js';
import { asJson, print, type Environment, type Output } from './output.js';
import { withDatabase } from './with-database.js';

/** `waybill tenant …` */
export function addTenant(program: Command, env: Environment): void {
  const tenant = program.command('tenant').description('tenants');
  addCreate(tenant, env);
  addList(tenant, env);
  addChange(tenant, env, 'suspend', 'refuse its keys and hold its deliveries', async (db, tenantId) => {
    return tenantView(await suspendTenant(db, tenantId, { suspended: true }));
  });
  addChange(tenant, env, 'resume', 'let a suspended tenant go on', async (db, tenantId) => {
    const resumed = await suspendTenant(db, tenantId, { suspended: false });
    await tellDispatchers(db, tenantId);
    return tenantView(resumed);
  });
  addChange(tenant, env, 'delete', 'delete a tenant with all that it owns', async (db, tenantId) => {
    await deleteTenant(db, tenantId);
    return { id: formatId('tenant', tenantId), status: 'deleting' };
  });
}

function addCreate(tenant: Command, env: Environment): void {
  asJson(
    tenant.command('create').description('make a tenant').requiredOption('--name <name>', 'its name'),
  ).action(async (options: Output & { name: string }) => {
    const made = await withDatabase(readConfig(env), (db) => createTenant(db, { name: options.name }));
    print(options, { id: formatId('tenant', made.id), name: made.name }, ({ id }) => [id]);
  });
}

function addList(tenant: Command, env: Environment): void {
  asJson(
    tenant
      .command('list')
      .description('show the tenants')
      .option('--deleting', 'show those that are being deleted', false),
  ).action(async (options: Output & { deleting: boolean }) => {
    const { deleting } = options;
    const tenants = await withDatabase(readConfig(env), (db) =>
      everyPage((page) => listTenants(db, { ...page, deleting })),
    );
    const data = tenants.map(tenantView);
    print(options, { data }, () =>
      data.map((one) => `${one.id}  ${one.created_at}  ${one.status.padEnd(9)}  ${one.name}`),
    );
  });
}

function addChange(
  tenant: Command,
  env: Environment,
  name: 'suspend' | 'resume' | 'delete',
  description: string,
  change: (db: Queryable, tenantId: string) => Promise<{ readonly id: string; readonly status: string }>,
): void {
  asJson(tenant.command(name).description(description).argument('<tenant>', 'which one, tnt_…')).action(
    async (id: string, options: Output) => {
      const tenantId = parseId('tenant', id);
      const changed = await withDatabase(readConfig(env), (db) => change(db, tenantId));
      print(options, changed, ({ status }) => [`${id} is ${status}.`]);
    },
  );
}

/** Dispatchers find what waits by themselves; a hint makes it soon. */
async function tellDispatchers(db: Queryable, tenantId: string): Promise<void> {
  const hints = createHints(db, () => undefined);
  const swept = await sweepEndpoints(db, { tenantId, endpointId: NIL_UUID }, 1_000);
  hints.notify(swept.filter((endpoint) => endpoint.tenantId === tenantId));
  await hints.settled();
}

function tenantView({ id, name, createdAt, suspendedAt, deletedAt }: Tenant) {
  return {
    id: formatId('tenant', id),
    name,
    status: deletedAt !== null ? 'deleting' : suspendedAt !== null ? 'suspended' : 'active',
    created_at: createdAt.toISOString(),
    suspended_at: suspendedAt?.toISOString() ?? null,
    deleted_at: deletedAt?.toISOString() ?? null,
  };
}
