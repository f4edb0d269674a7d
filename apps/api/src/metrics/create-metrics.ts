import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { QueueMeasure } from '#outbox';

/** What the database says when it is asked for a scrape. */
export interface DatabaseMeasure {
  readonly queue: QueueMeasure;
  readonly partitionDays: number;
}

/** The counts of this process, and the queue's as far as somebody measured it. */
export interface Metrics {
  readonly eventsAccepted: Counter;
  countRequest(method: string, route: string, status: number, durationMs: number): void;
  showDatabase(measure: DatabaseMeasure | null): void;
  render(): Promise<{ contentType: string; text: string }>;
}

/** A registry of its own, so that two apps in one process do not share counts. */
export function createMetrics(openRequests: () => number): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, prefix: 'waybill_' });
  const eventsAccepted = new Counter({
    name: 'waybill_events_accepted_total',
    help: 'Events stored by this process; repeats under an idempotency key are not counted again.',
    registers,
  });
  const requests = new Counter({
    name: 'waybill_http_requests_total',
    help: 'HTTP requests answered, by route and status.',
    labelNames: ['method', 'route', 'status'],
    registers,
  });
  const durations = new Histogram({
    name: 'waybill_http_request_duration_seconds',
    help: "Time from a request's headers to the end of its answer.",
    labelNames: ['route'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const open = new Gauge({
    name: 'waybill_http_requests_open',
    help: 'HTTP requests without a complete answer.',
    registers,
  });
  const showDatabase = databaseGauges(registry);
  return {
    eventsAccepted,
    countRequest(method, route, status, durationMs) {
      requests.inc({ method, route, status });
      durations.observe({ route }, durationMs / 1000);
    },
    showDatabase,
    async render() {
      open.set(openRequests());
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

function databaseGauges(registry: Registry): (measure: DatabaseMeasure | null) => void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [registry] });
  const up = gauge('waybill_database_up', '1 when the last measure of the queue succeeded.');
  const due = gauge('waybill_queue_due', 'Deliveries that are due and not under way.');
  const oldest = gauge('waybill_oldest_due_age_seconds', 'How long the oldest due delivery has been due.');
  const inFlight = gauge('waybill_in_flight', 'Deliveries under a lease.');
  const deliveries = new Gauge({
    name: 'waybill_deliveries',
    help: 'Deliveries that are owed, by state; dead: unresolved dead letters.',
    labelNames: ['state'],
    registers: [registry],
  });
  const days = gauge('waybill_partition_days_ahead', 'Days of partitions that stand ready, today included.');
  return (measured) => {
    up.set(measured === null ? 0 : 1);
    if (measured === null) return;
    days.set(measured.partitionDays);
    const measure = measured.queue;
    due.set(measure.due);
    oldest.set(measure.oldestDueAgeSeconds);
    inFlight.set(measure.inProgress);
    deliveries.set({ state: 'pending' }, measure.pending);
    deliveries.set({ state: 'failed' }, measure.failed);
    deliveries.set({ state: 'in_progress' }, measure.inProgress);
    deliveries.set({ state: 'held' }, measure.held);
    deliveries.set({ state: 'dead' }, measure.dead);
  };
}
