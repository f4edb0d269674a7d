import { collectDefaultMetrics, Counter, Gauge, register } from 'prom-client';

collectDefaultMetrics({ prefix: 'waybill_' });

/** Every metric of this process in the Prometheus text format. */
export { register };

/** Attempts that are in the database, by outcome. */
export const attemptsTotal = new Counter({
  name: 'waybill_attempts_total',
  help: 'Recorded attempts by outcome.',
  labelNames: ['outcome'] as const,
});

/** Attempts recorded after their lease had passed to another claim: history only. */
export const recordedLateTotal = new Counter({
  name: 'waybill_attempts_superseded_total',
  help: 'Attempts whose claim no longer stood when they were recorded.',
});

/** Circuits that opened, opened again after a failed probe, closed, or were switched off while open. */
export const circuitChangesTotal = new Counter({
  name: 'waybill_circuit_changes_total',
  help: 'Changes of circuits by verdict: opens, reopens, closes, ends.',
  labelNames: ['verdict'] as const,
});

/** Shows a number that is asked for at each scrape. */
export function gauge(name: string, help: string, read: () => number): Gauge {
  return new Gauge({
    name,
    help,
    collect() {
      this.set(read());
    },
  });
}
