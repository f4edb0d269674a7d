import { describe, expect, it } from 'vitest';
import { SETTINGS, unknownSettings } from './settings.js';

describe('settings that are none', () => {
  it.each([
    ['WAYBILL_CONCURENCY', 'WAYBILL_CONCURRENCY'],
    ['WAYBILL_LEASE_SECONDS', null],
    ['WAYBILL_LEASE', 'WAYBILL_LEASE_MS'],
    ['WAYBILL_METRIC_TOKEN', 'WAYBILL_METRICS_TOKEN'],
    ['waybill_port', 'WAYBILL_PORT'],
    ['WAYBILL_EGRESS_ALOW', 'WAYBILL_EGRESS_ALLOW'],
    ['WAYBILL_FROBNICATE', null],
  ])('%s is named, with %s', (name, nearest) => {
    expect(unknownSettings({ [name]: '1', WAYBILL_PORT: '1' })).toEqual([{ name, nearest }]);
  });

  it('are not those that are known, that belong to others, or that Kubernetes makes for a service of our name', () => {
    const env = Object.fromEntries(
      [
        ...SETTINGS,
        'WAYBILL_HOME',
        'WAYBILL_KEY',
        'WAYBILL_TEST_SEED',
        'WAYBILL_SERVICE_HOST',
        'WAYBILL_SERVICE_PORT_HTTP',
        'WAYBILL_PORT_8420_TCP_ADDR',
        'PATH',
        'WAYBILLS',
      ].map((name) => [name, 'x']),
    );
    expect(unknownSettings(env)).toEqual([]);
  });
});
