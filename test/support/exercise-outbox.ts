import { randomUUID } from 'node:crypto';

import {
  acceptEvents,
  addDelivery,
  announceEvents,
  cancelDeleted,
  cancelDelivery,
  cancelEvent,
  claimDeliveries,
  claimIdempotencyKey,
  countPartitionDays,
  countQueueBlocks,
  createHints,
  disableFailing,
  discoverEndpoints,
  dropReplica,
  ensureCircuits,
  type EndpointRef,
  type EventInput,
  expireDeliveries,
  findLapsedClaims,
  giveBackDeliveries,
  hasAnnouncements,
  keepReplica,
  listDeadLetters,
  listDeliveries,
  listEvents,
  matchEndpoints,
  measureQueue,
  measureReplicas,
  nameKeyResource,
  NIL_UUID,
  purgeIdempotencyKeys,
  readDeadLetter,
  readDelivery,
  readEvent,
  readSigningSecrets,
  readStanding,
  recordAttempts,
  replayDelivery,
  sweepEndpoints,
} from '#outbox';
import type { Queryable } from '#runtime';
import type { Pool } from 'pg';

import { settleClaim } from './settle-claim.js';

const DAY_MS = 86_400_000;

const PLANT_ENDPOINTS = `
with tenant as (
  insert into waybill.tenants (id, name) select id, 'tenant ' || id from unnest($1::uuid[]) id
),
endpoint as (
  insert into waybill.endpoints (tenant_id, id, url)
  select tenant_id, gen_random_uuid(), 'https://receiver.example/' || n
  from unnest($1::uuid[]) tenant_id, generate_series(1, 3) n
  returning tenant_id, id
),
subscribed as (
  insert into waybill.subscriptions (tenant_id, event_type, endpoint_id) select tenant_id, '*', id from endpoint
),
secret as (
  insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
  select tenant_id, id, gen_random_uuid(), 'whsec_test' from endpoint
)
select tenant_id, id from endpoint
`;

/** Makes tenants of these ids with three subscribed endpoints each. */
export async function plantTenants(pool: Pool, tenantIds: readonly string[]): Promise<EndpointRef[]> {
  const { rows } = await pool.query<{ tenant_id: string; id: string }>(PLANT_ENDPOINTS, [tenantIds]);
  return rows.map((row) => ({ tenantId: row.tenant_id, endpointId: row.id }));
}

/**
 * Calls every function of libs/outbox that sends SQL, each as the product does, so that every statement and every
 * variant of it goes through `db`. A new statement gets its call here. `pool` sets the scene between them.
 */
export async function exerciseOutbox(
  db: Queryable,
  pool: Pool,
  endpoints: readonly EndpointRef[],
): Promise<void> {
  const { tenantId, deliveries, eventId } = await accept(db, endpoints);
  await claimAndRecord(db, endpoints);
  await read(db, { tenantId, eventId, endpointId: endpoints[0]!.endpointId, deliveryId: deliveries[0]!.id });
  for (const { id } of deliveries) {
    const replay = { apiKeyId: null, maxAgeMs: DAY_MS };
    await replayDelivery(db, tenantId, id, replay);
  }
  await pool.query('update waybill.endpoints set deleted_at = now() where id = $1', [
    endpoints[0]!.endpointId,
  ]);
  await cancelDeleted(db, endpoints[0]!, 100);
  const left = deliveries.find(({ endpointId }) => endpointId !== endpoints[0]!.endpointId)!;
  await change(db, { tenantId, endpointId: left.endpointId, deliveryId: left.id });
  await lookAfter(db);
}

function eventOf(tenantId: string, key: string, eventType = 'order.created'): EventInput {
  return {
    tenantId,
    eventType,
    payload: Buffer.from('{}'),
    contentType: 'application/json',
    metadata: null,
    notBefore: null,
    idempotency: { key, fingerprint: Buffer.alloc(32) },
  };
}

/** Two tenants in one statement, and one of them again under a key it has used. */
async function accept(db: Queryable, endpoints: readonly EndpointRef[]) {
  const tenants = [...new Set(endpoints.map((endpoint) => endpoint.tenantId))];
  const inputs = tenants.map((tenantId) => eventOf(tenantId, 'once'));
  const [first] = await acceptEvents(db, inputs, { maxAgeMs: DAY_MS });
  await acceptEvents(db, inputs, { maxAgeMs: DAY_MS });
  if (first?.kind !== 'accepted') throw new Error('the first event was not accepted');
  const { id: eventId, deliveries } = first.event;
  return { tenantId: inputs[0]!.tenantId, eventId, deliveries };
}

async function claimAndRecord(db: Queryable, endpoints: readonly EndpointRef[]): Promise<void> {
  const quotas = endpoints.map((endpoint) => ({ ...endpoint, quota: 10, watermarkMs: 0 }));
  const claim = { claimToken: randomUUID(), leaseMs: 60_000 };
  const { deliveries } = await claimDeliveries(db, quotas, claim);
  if (deliveries.length !== endpoints.length) throw new Error(`claimed ${deliveries.length}`);
  const [first, second, third, ...rest] = deliveries;
  await ensureCircuits(db, endpoints);
  const settled = [
    settleClaim(first!, 'succeeded'),
    settleClaim(second!, 'failed'),
    settleClaim(third!, 'failed', { state: 'dead', reason: 'exhausted' }),
  ];
  await recordAttempts(db, settled);
  // As after a lost reply: these attempts are written already.
  await recordAttempts(db, settled);
  await giveBackDeliveries(db, rest, { delayMs: 0 });
}

async function read(
  db: Queryable,
  known: EndpointRef & { readonly eventId: string; readonly deliveryId: string },
): Promise<void> {
  const { tenantId, eventId, endpointId, deliveryId } = known;
  const bounds = { createdAfter: new Date(Date.now() - DAY_MS), createdBefore: null, limit: 50 };
  await listEvents(db, tenantId, { ...bounds, afterId: null, eventType: null, consumerId: null });
  for (const state of [null, 'pending', 'dead'] as const) {
    const after = { eventId, endpointId };
    for (const consumerId of [null, randomUUID()]) {
      await listDeliveries(db, tenantId, { ...bounds, after, endpointId, eventId: null, consumerId, state });
    }
  }
  await listDeadLetters(db, tenantId, { after: null, endpointId: null, resolved: false, limit: 50 });
  await readEvent(db, tenantId, eventId);
  await matchEndpoints(db, tenantId, { ...eventOf(tenantId, 'none'), consumerId: null }, 100);
  await readDelivery(db, tenantId, deliveryId);
  await readStanding(db, tenantId, deliveryId);
  await readDeadLetter(db, tenantId, deliveryId);
  await readStanding(db, tenantId, deliveryId);
  await readSigningSecrets(db, tenantId, endpointId);
}

/** What tenants change, each asked for twice: the second time is refused, and reads why. */
async function change(
  db: Queryable,
  { tenantId, endpointId, deliveryId }: EndpointRef & { readonly deliveryId: string },
): Promise<void> {
  const options = { maxAgeMs: DAY_MS };
  // No endpoint gets the platform's own events unless it asks for them.
  const [own] = await acceptEvents(db, [eventOf(tenantId, 'own', 'waybill.test')], options);
  if (own?.kind !== 'accepted') throw new Error('the second event was not accepted');
  const target = { eventId: own.event.id, endpointId };
  const use = { key: 'created', fingerprint: Buffer.alloc(32) };
  const claims = [await claimIdempotencyKey(db, tenantId, use), await claimIdempotencyKey(db, tenantId, use)];
  await nameKeyResource(db, tenantId, use.key, endpointId);
  const kinds = [
    ...claims.map(({ kind }) => kind),
    (await cancelDelivery(db, tenantId, deliveryId)).kind,
    (await cancelDelivery(db, tenantId, deliveryId)).kind,
    (await addDelivery(db, tenantId, target, options)).kind,
    (await addDelivery(db, tenantId, target, options)).kind,
    (await cancelEvent(db, tenantId, own.event.id))?.map(({ result }) => result).join(' and '),
  ];
  const expected = ['claimed', 'repeated', 'cancelled', 'not_cancellable', 'added', 'exists', 'cancelled'];
  if (kinds.join() !== expected.join()) throw new Error(`expected ${expected.join()}, got ${kinds.join()}`);
}

/** What the dispatchers ask for a whole place. */
async function lookAfter(db: Queryable): Promise<void> {
  const blocks = { from: 0, until: 100 };
  await discoverEndpoints(db, { lookBackMs: DAY_MS }, 100);
  await sweepEndpoints(db, { tenantId: NIL_UUID, endpointId: NIL_UUID }, 100);
  await countQueueBlocks(db);
  await findLapsedClaims(db, blocks, 100);
  await expireDeliveries(db, blocks, 100);
  await purgeIdempotencyKeys(db, 100);
  await disableFailing(db, { failingMs: DAY_MS, limit: 100 });
  await hasAnnouncements(db);
  await announceEvents(db, { limit: 100, maxAgeMs: DAY_MS });
  const replicaId = randomUUID();
  await keepReplica(db, replicaId, { tenantsAtCap: [], endpointsAtCap: [], slotsFull: false });
  await measureReplicas(db);
  await dropReplica(db, replicaId);
  await measureQueue(db);
  await countPartitionDays(db);
  const hints = createHints(db, (error) => {
    throw error;
  });
  hints.notify([{ tenantId: NIL_UUID, endpointId: NIL_UUID }]);
  await hints.settled();
}
