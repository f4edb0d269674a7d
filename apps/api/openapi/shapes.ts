import type { Scope } from '#tenants';
import type { consumerView } from '../src/consumers/consumer-view.js';
import type { deliveryView } from '../src/deliveries/delivery-view.js';
import type { eventView } from '../src/events/event-view.js';
import type { acceptedView, itemView, markedView } from '../src/publish/accepted-view.js';

/** One event as it is published: what publish/read-envelope.ts reads out of the bytes. */
export interface PublishEvent {
  event_type: string;
  payload: unknown;
  consumer?: string | null;
  not_before?: string | null;
  metadata?: Record<string, string> | null;
}

/** An event of a batch. */
export interface BatchItem extends PublishEvent {
  idempotency_key?: string | null;
}

/** A batch: what publish/read-batch.ts reads out of the bytes. */
export interface PublishBatch {
  events: readonly BatchItem[];
  mode?: 'all_or_nothing' | 'per_item' | null;
}

interface RetryManner {
  jitter?: number | 'full';
  retry_on?: 'any' | 'transient';
}

/** A policy by its name. */
export interface RetryByPreset {
  preset: 'default' | 'outbox' | 'form';
}

/** One wait for each retry. */
export interface RetryBySchedule extends RetryManner {
  schedule_seconds: readonly number[];
}

/** Waits that double from the initial one to the cap. */
export interface RetryByBackoff extends RetryManner {
  initial_seconds: number;
  cap_seconds: number;
  max_attempts: number;
}

/** How long one attempt may take. */
export interface AttemptTimeout {
  connect_ms?: number | null;
  total_ms?: number | null;
}

/** When a circuit opens, and for how long. */
export interface CircuitPolicy {
  failures?: number | null;
  failure_ratio?: number | null;
  open_seconds?: number | null;
}

/** The API key that a tenant is made with. */
export interface FirstKey {
  name?: string;
  scopes?: readonly Scope[];
}

/** The types of fields of requests whose DTO says less: those that it leaves to a reader of their own, and what is text in a query. */
export interface RequestFields {
  limit: number;
  cursor: string;
  resolved: boolean;
  deleting: boolean;
  scopes: readonly Scope[];
  first_key: FirstKey | null;
  'CreateSecret.overlap_seconds': number | null;
  filter: Record<string, unknown> | null;
  uid: string;
  'ListEvents.consumer': string;
  'ListEndpoints.consumer': string;
  'ListDeliveries.consumer': string;
  'CreateEndpoint.consumer': string | null;
  'CreateConsumer.metadata': Record<string, string> | null;
  'PatchConsumer.metadata': Record<string, string> | null;
  retry: RetryByPreset | RetryBySchedule | RetryByBackoff | null;
  max_age_seconds: number | null;
  timeout: AttemptTimeout | null;
  rate_per_second: number | null;
  concurrency: number | null;
  circuit: CircuitPolicy | 'off' | null;
}

/** The bodies that no DTO describes, by operation. */
export interface RequestBodies {
  publishEvent: PublishEvent;
  publishBatch: PublishBatch;
  matchEvent: PublishEvent;
}

/** A batch that was taken item by item: what became of each. */
export interface BatchResults {
  data: readonly ReturnType<typeof itemView>[];
}

/** A batch that was stored whole. */
export interface StoredBatch {
  data: readonly ReturnType<typeof markedView>[];
}

/** Whether a process is ready, and why not. */
export interface HealthReport {
  status: 'ok' | 'error' | 'shutting_down';
  info: Record<string, HealthIndicator>;
  error: Record<string, HealthIndicator>;
  details: Record<string, HealthIndicator>;
}

/** One of the things that being ready depends on. */
export interface HealthIndicator {
  status: 'up' | 'down';
  message?: string;
  days_ahead?: number | null;
  warning?: string;
}

/** What the return type of a handler does not say, by operation and status. A string is text, not JSON. */
export interface Answers {
  publishEvent: { 201: ReturnType<typeof acceptedView> };
  publishBatch: { 200: BatchResults; 201: StoredBatch };
  ensureConsumer: { 200: ReturnType<typeof consumerView>; 201: ReturnType<typeof consumerView> };
  readEvent: {
    200: ReturnType<typeof eventView> & {
      content_type: string;
      deliveries: readonly ReturnType<typeof deliveryView>[];
      payload: unknown;
    };
  };
  checkReadiness: { 200: HealthReport; 503: HealthReport };
  readMetrics: { 200: string };
  readDocs: { 200: string; 304: void };
  readOpenapi: { 200: Record<string, unknown>; 304: void };
}
