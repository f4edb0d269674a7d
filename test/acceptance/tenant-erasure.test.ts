import { randomUUID } from 'node:crypto';

import { acceptEvents, claimDeliveries, ensureCircuits, type EndpointRef, recordAttempts } from '#outbox';
import { openDataSource } from '#runtime';
import { createApiKey, createTenant, deleteTenant, purgeTenants, withTenant } from '#tenants';
import type { Pool } from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { createTestDatabase, createTestPool, type TestDatabase } from '../support/database.js';
import { exerciseOutbox, plantTenants } from '../support/exercise-outbox.js';
import { settleClaim } from '../support/settle-claim.js';
import { waitFor } from '../support/wait-for.js';

const DAY_MS = 86_400_000;

/** What no call of exerciseOutbox leaves behind. */
const PLANT_REST = `
with circuit as (
  insert into waybill.circuits (tenant_id, endpoint_id) values ($1, $2) on conflict do nothing
),
rate as (
  insert into waybill.rate_tokens (tenant_id, endpoint_id, tokens, refilled_at) values ($1, $2, 1, now()) on conflict do nothing
),
data_key as (
  insert into waybill.tenant_data_keys (tenant_id, version, wrapped_key, kek_version)
  values ($1, 1, decode(repeat('00', 65), 'hex'), 1)
  on conflict do nothing
)
insert into waybill.announcements (tenant_id, event_type, subject_id, endpoint_id, created_at)
values ($1, 'waybill.endpoint.disabled', $2, $2, now())
on conflict do nothing
`;

const PLANT_CONSUMER = `
insert into waybill.consumers (tenant_id, id, uid) values ($1, gen_random_uuid(), 'of the tenant')
`;

const TENANT_TABLES = `
select c.relname::text as name
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
where c.relnamespace = 'waybill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by 1
`;

let database: TestDatabase;
let pool: Pool;
beforeEach(async () => {
  database = await createTestDatabase();
  pool = database.pool;
});
afterEach(() => database.drop());

/** A tenant that owns rows in every table. */
async function plantTenant(): Promise<{ tenantId: string; endpoints: EndpointRef[] }> {
  const tenantId = randomUUID();
  const endpoints = await plantTenants(pool, [tenantId]);
  await exerciseOutbox(pool, pool, endpoints);
  await createApiKey(pool, tenantId, { name: 'of the tenant', scopes: ['admin'] });
  await pool.query(PLANT_CONSUMER, [tenantId]);
  return { tenantId, endpoints };
}

async function plantRest({
  tenantId,
  endpoints,
}: {
  tenantId: string;
  endpoints: EndpointRef[];
}): Promise<void> {
  await pool.query(PLANT_REST, [tenantId, endpoints[0]!.endpointId]);
}

/** How many rows of a tenant each table holds, by the catalogue. */
async function rowsOf(tenantId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const { rows: tables } = await pool.query<{ name: string }>(TENANT_TABLES);
  for (const { name } of tables) {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*)::integer as count from waybill.${name} where tenant_id = $1`,
      [tenantId],
    );
    counts[name] = rows[0]!.count;
  }
  return counts;
}

async function isErased(tenantId: string): Promise<boolean> {
  return (await pool.query('select from waybill.tenants where id = $1', [tenantId])).rowCount === 0;
}

async function eraseAll(tenantId: string, rows = 50): Promise<number> {
  let calls = 0;
  await waitFor(
    async () => {
      calls += 1;
      const [purged] = await purgeTenants(pool, { tenants: 1, rows });
      return purged === undefined || (purged.tenantId === tenantId && purged.removed === null);
    },
    { what: 'the tenant to be erased' },
  );
  return calls;
}

function eventOf(tenantId: string, key: string | null = null) {
  return {
    tenantId,
    eventType: 'order.created',
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: key === null ? null : { key, fingerprint: Buffer.alloc(32, 1) },
  };
}

describe('a deleted tenant', () => {
  it('loses every row of every table, in small steps, its own last, and nobody else loses one', async () => {
    const gone = await plantTenant();
    const stays = await plantTenant();
    // Announcements are taken by whoever comes next, whose they are.
    for (const planted of [gone, stays]) await plantRest(planted);
    const [before, kept] = [await rowsOf(gone.tenantId), await rowsOf(stays.tenantId)];
    // Whoever adds a table plants a row of it above: erasing it is derived from the catalogue.
    expect(Object.entries(before).filter(([, count]) => count === 0)).toEqual([]);
    await deleteTenant(pool, gone.tenantId);
    const calls = await eraseAll(gone.tenantId, 2);
    expect(calls).toBeGreaterThanOrEqual(Object.keys(before).length);
    const after = await rowsOf(gone.tenantId);
    expect(Object.values(after).every((count) => count === 0)).toBe(true);
    expect(await isErased(gone.tenantId)).toBe(true);
    expect(await rowsOf(stays.tenantId)).toEqual(kept);
  });

  it('is touched by that alone: nobody may erase one that lives, and only the dispatcher may ask', async () => {
    const { tenantId } = await plantTenant();
    const before = await rowsOf(tenantId);
    const asked = await pool.query('select waybill.purge_tenant($1, 100) as removed', [tenantId]);
    expect(asked.rows).toEqual([{ removed: null }]);
    expect(await rowsOf(tenantId)).toEqual(before);
    for (const [role, allowed] of [
      ['waybill_dispatcher', true],
      ['waybill_app', false],
      ['waybill_intake', false],
      ['waybill_operator', false],
    ] as const) {
      const { rows } = await pool.query<{ allowed: boolean }>(
        `select has_function_privilege($1, 'waybill.purge_tenant(uuid, integer)', 'execute') as allowed`,
        [role],
      );
      expect([role, rows[0]!.allowed]).toEqual([role, allowed]);
    }
  });

  it('is suspended too, to code that knows no tombstone', async () => {
    const { id } = await createTenant(pool, { name: 'short-lived' });
    await expect(
      pool.query('update waybill.tenants set deleted_at = now() where id = $1', [id]),
    ).rejects.toThrow(/tenants_deleted_is_suspended/);
    await deleteTenant(pool, id);
    await expect(
      pool.query('update waybill.tenants set suspended_at = null where id = $1', [id]),
    ).rejects.toThrow(/tenants_deleted_is_suspended/);
  });

  it('gets no event stored by an accept that begins afterwards, beside others in the same statement', async () => {
    const gone = await plantTenant();
    const stays = await plantTenant();
    await deleteTenant(pool, gone.tenantId);
    const before = await rowsOf(gone.tenantId);
    const results = await acceptEvents(pool, [eventOf(gone.tenantId), eventOf(stays.tenantId)], {
      maxAgeMs: DAY_MS,
    });
    expect(results.map(({ kind }) => kind)).toEqual(['tenant_deleted', 'accepted']);
    await expect(
      acceptEvents(pool, [eventOf(gone.tenantId, 'a new key')], { maxAgeMs: DAY_MS }),
    ).rejects.toMatchObject({ code: 'idempotency_key_in_progress' });
    expect(await rowsOf(gone.tenantId)).toEqual(before);
  });

  it('leaves no row of an accept that was under way when it was deleted', async () => {
    const { tenantId } = await plantTenant();
    const client = await pool.connect();
    await client.query('begin');
    const [accepted] = await acceptEvents(client, [eventOf(tenantId)], { maxAgeMs: DAY_MS });
    expect(accepted!.kind).toBe('accepted');
    await deleteTenant(pool, tenantId);
    for (let call = 0; call < 100; call += 1) await purgeTenants(pool, { tenants: 1, rows: 1_000 });
    // All that can be seen is gone, and it still waits for what cannot be.
    expect(Object.values(await rowsOf(tenantId)).every((count) => count === 0)).toBe(true);
    expect(await isErased(tenantId)).toBe(false);
    await client.query('commit');
    client.release();
    expect((await rowsOf(tenantId))['events']).toBe(1);
    await eraseAll(tenantId);
    expect(Object.values(await rowsOf(tenantId)).every((count) => count === 0)).toBe(true);
  });

  it('waits for whoever wrote when it was deleted, of another tenant too, and for nobody who began later', async () => {
    const [gone, other] = [await plantTenant(), await plantTenant()];
    const client = await pool.connect();
    const writeForOther = async () => {
      await client.query('begin');
      await acceptEvents(client, [eventOf(other.tenantId)], { maxAgeMs: DAY_MS });
    };
    await writeForOther();
    await deleteTenant(pool, gone.tenantId);
    for (let call = 0; call < 50; call += 1) await purgeTenants(pool, { tenants: 4, rows: 1_000 });
    expect(await isErased(gone.tenantId)).toBe(false);
    await client.query('commit');
    await writeForOther();
    await eraseAll(gone.tenantId);
    expect(await isErased(gone.tenantId)).toBe(true);
    await client.query('rollback');
    client.release();
  });

  it('refuses a transaction of its own that begins afterwards, and waits for one that began before', async () => {
    const { tenantId, endpoints } = await plantTenant();
    const source = await openDataSource({
      url: database.url,
      role: 'waybill_app',
      entities: [],
      applicationName: 'waybill-test',
      max: 2,
    });
    let finish!: () => void;
    const open = new Promise<void>((resolve) => (finish = resolve));
    let begun!: () => void;
    const started = new Promise<void>((resolve) => (begun = resolve));
    const under = withTenant(source, tenantId, async (tx) => {
      begun();
      await open;
      // Its key was good when it came, and it writes only now.
      await tx.query({
        text: `insert into waybill.subscriptions (tenant_id, event_type, endpoint_id) values ($1, 'late.event', $2)`,
        values: [tenantId, endpoints[1]!.endpointId],
      });
    });
    await started;
    await deleteTenant(pool, tenantId);
    await expect(withTenant(source, tenantId, async () => undefined)).rejects.toMatchObject({
      code: 'invalid_api_key',
    });
    for (let call = 0; call < 50; call += 1) await purgeTenants(pool, { tenants: 1, rows: 1_000 });
    expect((await rowsOf(tenantId))['endpoints']).toBe(3);
    finish();
    await under;
    await eraseAll(tenantId);
    expect(Object.values(await rowsOf(tenantId)).every((count) => count === 0)).toBe(true);
    await source.destroy();
  });

  it('leaves no row of a worker that was paused through all of it', async () => {
    const { tenantId, endpoints } = await plantTenant();
    await acceptEvents(pool, [eventOf(tenantId)], { maxAgeMs: DAY_MS });
    const quotas = endpoints.map((endpoint) => ({ ...endpoint, quota: 10, watermarkMs: 0 }));
    const options = { claimToken: randomUUID(), leaseMs: 60_000 };
    const { deliveries } = await claimDeliveries(pool, quotas, options);
    expect(deliveries.length).toBeGreaterThan(0);
    await deleteTenant(pool, tenantId);
    const claimedLater = await claimDeliveries(pool, quotas, { ...options, claimToken: randomUUID() });
    expect(claimedLater.deliveries).toEqual([]);
    await eraseAll(tenantId);
    await ensureCircuits(pool, endpoints);
    const { moved } = await recordAttempts(
      pool,
      deliveries.map((delivery) => settleClaim(delivery, 'failed')),
    );
    expect([...moved]).toEqual([]);
    expect(Object.values(await rowsOf(tenantId)).every((count) => count === 0)).toBe(true);
  });

  it('is erased by two at once as by one, and by whoever comes after one that died', async () => {
    const { tenantId } = await plantTenant();
    await deleteTenant(pool, tenantId);
    const dying = createTestPool(database.url, 1);
    const client = await dying.connect();
    await client.query('begin');
    await client.query('select waybill.purge_tenant($1, 5)', [tenantId]);
    expect(await purgeTenants(pool, { tenants: 1, rows: 5 })).toEqual([{ tenantId, removed: 0 }]);
    // Dies in the middle of its step.
    client.release(new Error('killed'));
    await dying.end();
    const both = [eraseAll(tenantId, 1), eraseAll(tenantId, 1)];
    await Promise.all(both);
    expect(await isErased(tenantId)).toBe(true);
  });
});
