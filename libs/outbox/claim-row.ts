import type { Claim, ClaimedDelivery, ClaimedEndpoint } from './types.js';

/** A row of a claim's answer: a delivery (`standing` is null), or how one of the chosen endpoints stands. */
export type ClaimRow = DeliveryRow | EndpointRow;

interface DeliveryRow {
  readonly tenant_id: null;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly delivery_id: string;
  readonly attempt_count: number;
  readonly cycle_attempt_count: number;
  readonly due_at_ms: number;
  readonly expires_at_ms: number;
  readonly event_type: string;
  readonly content_type: string;
  readonly payload: Buffer;
  readonly standing: null;
}

interface EndpointRow {
  readonly tenant_id: string;
  readonly endpoint_id: string;
  readonly standing: EndpointStanding;
}

interface EndpointStanding {
  readonly standing: 'ready' | 'probe' | 'open' | 'waiting' | 'held';
  readonly allowed: number;
  readonly hold_ms: number | null;
  readonly tokens: number | null;
  readonly rate: number | null;
  readonly recovering_cap: number | null;
  readonly now_ms: number;
  readonly lease_until_ms: number;
  readonly url: string;
  readonly revision: number;
  readonly secrets_version: number;
  readonly concurrency: number | null;
  readonly retry: unknown;
  readonly connect_timeout_ms: number | null;
  readonly attempt_timeout_ms: number | null;
  readonly circuit_failures: number | null;
  readonly circuit_failure_ratio: number | null;
  readonly circuit_open_ms: number | null;
}

/** When nothing may be taken and no time is known: its tokens have no row yet, or somebody holds it. */
const LOCKED_WAIT_MS = 20;

/** A claim's rows put together: each delivery with the endpoint it goes to. */
export function toClaim(rows: readonly ClaimRow[], claimToken: string): Claim {
  const taken = new Map<string, number>();
  for (const row of rows)
    if (row.standing === null) taken.set(row.endpoint_id, (taken.get(row.endpoint_id) ?? 0) + 1);
  const endpoints = new Map<string, ClaimedEndpoint>();
  let databaseNowMs = 0;
  let leaseUntilMs = 0;
  for (const row of rows) {
    if (row.standing === null) continue;
    endpoints.set(row.endpoint_id, toEndpoint(row, taken.get(row.endpoint_id) ?? 0));
    databaseNowMs = row.standing.now_ms;
    leaseUntilMs = row.standing.lease_until_ms;
  }
  const deliveries: ClaimedDelivery[] = [];
  for (const row of rows) {
    if (row.standing !== null) continue;
    const endpoint = endpoints.get(row.endpoint_id)!;
    deliveries.push({
      tenantId: endpoint.tenantId,
      endpointId: endpoint.endpointId,
      eventId: row.event_id,
      deliveryId: row.delivery_id,
      claimToken,
      attemptNumber: row.attempt_count,
      cycleAttemptNumber: row.cycle_attempt_count,
      eventType: row.event_type,
      contentType: row.content_type,
      payload: row.payload,
      endpoint,
      dueAtMs: row.due_at_ms,
      expiresAtMs: row.expires_at_ms,
      leaseUntilMs,
    });
  }
  // The update gives them by their place in the table.
  deliveries.sort((one, other) => one.dueAtMs - other.dueAtMs);
  return { deliveries, endpoints: [...endpoints.values()], databaseNowMs };
}

function toEndpoint({ tenant_id, endpoint_id, standing: row }: EndpointRow, taken: number): ClaimedEndpoint {
  const limited = row.standing === 'ready' && row.allowed === 0;
  return {
    tenantId: tenant_id,
    endpointId: endpoint_id,
    standing: limited ? 'limited' : row.standing,
    allowed: row.allowed,
    waitMs: limited
      ? (rateWaitMs(row, taken) ?? LOCKED_WAIT_MS)
      : row.standing === 'ready'
        ? rateWaitMs(row, taken)
        : row.hold_ms,
    url: row.url,
    revision: row.revision,
    secretsVersion: row.secrets_version,
    concurrency: row.concurrency,
    recoveringCap: row.recovering_cap,
    retry: row.retry,
    connectTimeoutMs: row.connect_timeout_ms,
    attemptTimeoutMs: row.attempt_timeout_ms,
    circuitFailures: row.circuit_failures,
    circuitFailureRatio: row.circuit_failure_ratio,
    circuitOpenMs: row.circuit_open_ms,
  };
}

/** Milliseconds until the endpoint's rate has its next token; null when one is left, or it has no rate. */
function rateWaitMs({ rate, tokens }: EndpointStanding, taken: number): number | null {
  if (rate === null || tokens === null) return null;
  const left = tokens - taken;
  return left >= 1 ? null : ((1 - left) / rate) * 1000;
}
