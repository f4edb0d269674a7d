import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

import { runProcess } from '../support/app-process.js';

const RUN = fileURLToPath(new URL('../../bench/run.mjs', import.meta.url));
const RATIOS: Record<string, string[]> = {
  deliver: [
    'vs_raw',
    'vs_serial',
    'vs_graphile_recorded',
    'vs_graphile_bare',
    'vs_pgboss',
    'two_vs_one',
    'cpu_us',
    'statements_per_delivery',
    'wal_bytes_per_delivery',
  ],
  send: ['vs_undici', 'node_us', 'undici_node_us'],
  ingest: ['single_vs_tx', 'batch_vs_unnest'],
  latency: ['p50_ms', 'p99_ms'],
  backlog: ['claim_5m_vs_1m', 'rss_mb'],
  discover: ['step_ms'],
  fairness: ['hang_p95_ms', 'fail_p95_ms', 'twenty_p95_ms', 'held_row_writes'],
  xmin: ['claim_end_vs_start'],
  match: ['one_ms', 'batch_ms', 'pair_us'],
};
// Some 20 s of two processors' time in all; they are rarely ours alone.
const PATIENCE_MS = 240_000;

interface Report {
  readonly bench: string;
  readonly machine: string;
  readonly commit: string;
  readonly ratios: Record<string, number>;
  readonly absolute: Record<string, number>;
}

it(
  'every bench runs and ends with its figures on one line',
  async () => {
    const { code, stdout, stderr } = await runProcess(RUN, ['all', '--smoke', '--json'], {});
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const reports: Report[] = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(JSON.stringify(reports.at(-1)));
    expect(Object.fromEntries(reports.map(({ bench, ratios }) => [bench, Object.keys(ratios)]))).toEqual(
      RATIOS,
    );
    for (const { bench, machine, commit, ratios, absolute } of reports) {
      expect(machine, bench).toMatch(bench === 'send' ? /Node [\d.]+$/ : /Node .+PostgreSQL/);
      expect(commit, bench).toMatch(/^[0-9a-f]{40}\+?$|^unknown$/);
      const figures = [...Object.values(ratios), ...Object.values(absolute)];
      expect(figures.length, bench).toBeGreaterThan(Object.keys(ratios).length);
      expect(
        figures.filter((figure) => !Number.isFinite(figure)),
        bench,
      ).toEqual([]);
    }
  },
  PATIENCE_MS,
);
