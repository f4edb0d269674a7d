import { isDeepStrictEqual } from 'node:util';
import type { EgressPolicy } from '#egress';
import type { VersionExpectation } from '#runtime';
import type { TenantTransaction } from '#tenants';
import { closeCircuit, deleteCircuit, resetCircuit } from './circuit.js';
import { acceptDescription, acceptEventTypes, acceptUrl, refuseOperatorEvents } from './endpoint-input.js';
import { Endpoint, type EndpointStatus } from './endpoint.entity.js';
import { lockEndpoint } from './lock-endpoint.js';
import { deleteRateTokens } from './rate-tokens.js';
import type { DeliveryPolicy } from './read-delivery-policy.js';
import { readFilter } from './read-filter.js';
import { findEndpoint, type SubscribedEndpoint } from './read-endpoint.js';
import { readSubscriptions, replaceSubscriptions } from './subscriptions.js';

/** What may be changed; what is undefined stays. */
export interface EndpointChange {
  readonly url?: string;
  readonly description?: string;
  readonly eventTypes?: readonly string[] | null;
  /** Null takes every payload again. */
  readonly filter?: unknown;
  readonly status?: EndpointStatus;
  readonly delivery?: Partial<DeliveryPolicy>;
}

/**
 * Changes an endpoint under a row lock: of two that expect the same version one succeeds, the other gets
 * `stale_version`. A new URL is a new revision; any real change is a new version. Whoever enables an endpoint, even one
 * that is enabled, says that it works again: its circuit closes.
 */
export async function updateEndpoint(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  change: EndpointChange,
  options: { readonly policy: EgressPolicy; readonly expects: VersionExpectation },
): Promise<SubscribedEndpoint> {
  const url = change.url === undefined ? undefined : acceptUrl(change.url, options.policy);
  const description = change.description === undefined ? undefined : acceptDescription(change.description);
  const eventTypes = change.eventTypes === undefined ? undefined : acceptEventTypes(change.eventTypes);
  const filter = change.filter === undefined ? undefined : readFilter(change.filter);
  const before = await lockEndpoint(tx, tenantId, endpointId, options.expects);
  if (before.consumerId !== null) refuseOperatorEvents(change.eventTypes ?? null);
  const subscribed = eventTypes !== undefined && (await resubscribe(tx, before, eventTypes));
  const asked = {
    ...given({ url, description, status: change.status }),
    ...(filter === undefined ? {} : { filter: filter?.filter ?? null }),
    // A person's word replaces what Waybill found.
    ...(change.status === undefined ? {} : { disabledReason: null }),
    ...change.delivery,
  };
  const changed = differing(before, asked);
  if (subscribed || Object.keys(changed).length > 0) {
    const revision = before.revision + ('url' in changed ? 1 : 0);
    await tx.getRepository(Endpoint).update(
      { tenantId, id: endpointId },
      {
        ...changed,
        ...('filter' in changed ? { filterPath: filter?.path ?? null } : {}),
        revision,
        version: before.version + 1,
        updatedAt: () => 'now()',
      },
    );
  }
  if (change.status === 'enabled') await resetCircuit(tx, tenantId, endpointId);
  else if (changed.circuitFailures === 0) await closeCircuit(tx, tenantId, endpointId);
  if (changed.ratePerSecond === null) await deleteRateTokens(tx, tenantId, endpointId);
  return findEndpoint(tx, tenantId, endpointId);
}

/** Of what is asked for, the part that is not so already. */
function differing(before: Endpoint, asked: Partial<Endpoint>): Partial<Endpoint> {
  const entries = Object.entries(asked) as [keyof Endpoint, unknown][];
  return Object.fromEntries(entries.filter(([name, value]) => !isDeepStrictEqual(value, before[name])));
}

function given<Fields extends object>(fields: Fields): Partial<Fields> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined),
  ) as Partial<Fields>;
}

/**
 * Marks an endpoint deleted: it gets no further deliveries, and the dispatcher cancels what is queued. The row stays
 * for history and for an attempt that is under way.
 */
export async function deleteEndpoint(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  options: { readonly expects: VersionExpectation },
): Promise<void> {
  const before = await lockEndpoint(tx, tenantId, endpointId, options.expects);
  await replaceSubscriptions(tx, tenantId, before, []);
  await deleteCircuit(tx, tenantId, endpointId);
  await deleteRateTokens(tx, tenantId, endpointId);
  await tx
    .getRepository(Endpoint)
    .update(
      { tenantId, id: endpointId },
      { deletedAt: () => 'now()', updatedAt: () => 'now()', version: before.version + 1 },
    );
}

async function resubscribe(
  tx: TenantTransaction,
  endpoint: Endpoint,
  eventTypes: readonly string[],
): Promise<boolean> {
  const stored = (await readSubscriptions(tx, endpoint.tenantId, [endpoint.id])).get(endpoint.id)!;
  const same = stored.length === eventTypes.length && stored.every((entry) => eventTypes.includes(entry));
  if (!same) await replaceSubscriptions(tx, endpoint.tenantId, endpoint, eventTypes);
  return !same;
}
