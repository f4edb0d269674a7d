import { randomBytes } from 'node:crypto';

import type { PublishedDelivery, PublishOptions, Stage } from './stage.js';
import { type Receiver, startReceiver } from './receiver.js';
import { waitFor } from './wait-for.js';

/** A delivery of a scene as its rows have it; what is owed is counted by its queue row. */
export interface SceneDelivery {
  readonly id: string;
  readonly state: string;
  readonly attempts: number;
  readonly owed: boolean;
  readonly leased: boolean;
  /** Milliseconds since 1970; null once nothing is owed. */
  readonly dueAtMs: number | null;
  readonly reason: string | null;
}

/** An endpoint's circuit as it is stored. */
export interface SceneCircuit {
  readonly state: string;
  readonly failures: number;
  readonly openUntilMs: number | null;
  readonly closedAtMs: number | null;
  readonly probeUntilMs: number | null;
  readonly heldUntilMs: number | null;
}

/** One endpoint of a stage with a receiver and events of its own, so that many can share the stage's dispatchers. */
export interface Scene {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly receiver: Receiver;
  readonly eventType: string;
  readonly secret: string;
  publish(count: number, options?: PublishOptions): Promise<PublishedDelivery[]>;
  deliveries(): Promise<SceneDelivery[]>;
  /** Null for an endpoint that never failed. */
  circuit(): Promise<SceneCircuit | null>;
  untilCircuit(state: string): Promise<SceneCircuit>;
  /** Waits until the scene's one delivery has an attempt of this number on record. */
  untilAttempt(number: number): Promise<SceneDelivery>;
  /** Waits until each of so many deliveries is in one of these states. */
  untilAll(states: readonly string[], timeoutMs?: number): Promise<SceneDelivery[]>;
}

/** An endpoint's policy by the columns of waybill.endpoints, past the checks of the API. */
export type PolicyColumns = Readonly<Record<string, unknown>>;

const READ_DELIVERIES = `
select d.id, d.state, coalesce(q.attempt_count, d.attempt_count) as attempts, q.event_id is not null as owed,
  q.lease_until is not null as leased, extract(epoch from q.due_at)::double precision * 1000 as "dueAtMs", l.reason
from waybill.deliveries d
left join waybill.delivery_queue q on q.tenant_id = d.tenant_id and q.event_id = d.event_id and q.endpoint_id = d.endpoint_id
left join waybill.dead_letters l on l.tenant_id = d.tenant_id and l.event_id = d.event_id and l.endpoint_id = d.endpoint_id
where d.endpoint_id = $1
order by d.event_id
`;

const READ_CIRCUIT = `
select state, consecutive_failures as failures,
  extract(epoch from open_until)::double precision * 1000 as "openUntilMs",
  extract(epoch from closed_at)::double precision * 1000 as "closedAtMs",
  extract(epoch from probe_until)::double precision * 1000 as "probeUntilMs",
  extract(epoch from held_until)::double precision * 1000 as "heldUntilMs"
from waybill.circuits
where endpoint_id = $1
`;

let scenes = 0;

/** Adds an endpoint with this policy to a stage; it gets the events that are published here, and no others. */
export async function openScene(
  stage: Stage,
  onTestFinished: (cleanUp: () => Promise<void>) => void,
  policy: PolicyColumns = {},
): Promise<Scene> {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const eventType = `scene.${(scenes += 1)}`;
  const { endpointId, secret } = await addSceneEndpoint(stage, receiver.url, eventType, policy);
  return {
    tenantId: stage.tenantId,
    receiver,
    eventType,
    secret,
    ...readersOf(stage, endpointId, eventType),
  };
}

const ADD_ENDPOINT = `
with added as (
  insert into waybill.endpoints (tenant_id, id, url) values ($1, gen_random_uuid(), $2) returning tenant_id, id
),
keyed as (
  insert into waybill.endpoint_secrets (tenant_id, endpoint_id, id, secret)
  select tenant_id, id, gen_random_uuid(), $3 from added
),
subscribed as (
  insert into waybill.subscriptions (tenant_id, endpoint_id, event_type) select tenant_id, id, $4 from added
)
select id from added
`;

/** Adds an endpoint that never takes anything but events of this type: scenes are opened while others publish. */
export async function addSceneEndpoint(
  stage: Stage,
  url: string,
  eventType: string,
  policy: PolicyColumns = {},
): Promise<{ endpointId: string; secret: string }> {
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  const values = [stage.tenantId, url, secret, eventType];
  const endpointId = (await stage.pool.query<{ id: string }>(ADD_ENDPOINT, values)).rows[0]!.id;
  await setPolicy(stage, endpointId, policy);
  return { endpointId, secret };
}

/** Makes an endpoint take events of this type alone. */
export async function listenFor(stage: Stage, endpointId: string, eventType: string): Promise<void> {
  await stage.pool.query('update waybill.subscriptions set event_type = $2 where endpoint_id = $1', [
    endpointId,
    eventType,
  ]);
}

/** Writes columns of an endpoint as they are. */
export async function setPolicy(stage: Stage, endpointId: string, policy: PolicyColumns): Promise<void> {
  for (const [column, value] of Object.entries(policy))
    await stage.pool.query(`update waybill.endpoints set ${column} = $2 where id = $1`, [endpointId, value]);
}

/** How to read what became of an endpoint and its deliveries. */
export function readersOf(
  stage: Stage,
  endpointId: string,
  eventType: string,
): Omit<Scene, 'tenantId' | 'receiver' | 'eventType' | 'secret'> {
  const deliveries = async (): Promise<SceneDelivery[]> =>
    (await stage.pool.query<SceneDelivery>(READ_DELIVERIES, [endpointId])).rows;
  const circuit = async (): Promise<SceneCircuit | null> =>
    (await stage.pool.query<SceneCircuit>(READ_CIRCUIT, [endpointId])).rows[0] ?? null;
  return {
    endpointId,
    publish: (count, options = {}) => stage.publish(count, { ...options, eventType }),
    deliveries,
    circuit,
    untilCircuit: (state) =>
      waitFor(
        async () => {
          const found = await circuit();
          return found?.state === state && found;
        },
        { what: `the circuit to be ${state}` },
      ),
    untilAttempt: (number) =>
      waitFor(
        async () => {
          const [found] = await deliveries();
          return found !== undefined && found.attempts >= number && !found.leased && found;
        },
        { what: `the record of attempt ${number}` },
      ),
    untilAll: (states, timeoutMs = 20_000) =>
      waitFor(
        async () => {
          const found = await deliveries();
          return found.every(({ state, leased }) => !leased && states.includes(state)) && found;
        },
        { what: `all deliveries to be ${states.join(' or ')}`, timeoutMs },
      ),
  };
}
