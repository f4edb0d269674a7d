import { readDeliveryPolicy } from '#endpoints';
import { AppError } from '#runtime';
import { describe, expect, it } from 'vitest';

import { scanJson } from '../../apps/api/src/http/scan-json.js';
import { readBatch } from '../../apps/api/src/publish/read-batch.js';
import { readEnvelope } from '../../apps/api/src/publish/read-envelope.js';
import { schemaValidator } from '../support/check-described.js';
import { DOCUMENT } from '../support/openapi-document.js';
import { REFUSED_POLICIES } from '../support/refused-policies.js';
import { fittingValue, type ValueSources } from '../support/schema-values.js';
import { type SeededRandom, seededRandom } from '../support/seeded-random.js';

const ROUNDS = 3_000;
const LIMITS = { connectTimeoutMs: 5_000, attemptTimeoutMs: 15_000, leaseMs: 400_000 };
const EVENT_LIMITS = { eventBytesMax: 262_144, batchEventsMax: 1_000 };

/** Rules between two fields, and between a field and the platform: no schema of one field can have them. */
const BETWEEN_FIELDS: ReadonlySet<string> = new Set(['retry.cap_seconds', 'timeout.connect_ms']);

const POLICY_FIELDS = ['retry', 'max_age_seconds', 'timeout', 'rate_per_second', 'concurrency', 'circuit'];

const sources: ValueSources = {
  texts: [
    'https://example.com/',
    '',
    'a',
    'a.b',
    'waybill.x',
    'k-1',
    'é',
    ' ',
    'off',
    'full',
    'form',
    'per_item',
    'any',
    'x'.repeat(600),
  ],
  anything: (random) => odd(random),
};

function odd(random: SeededRandom): unknown {
  return random.pick<unknown>([
    null,
    true,
    0,
    -1,
    1.5,
    1e9,
    '',
    ...sources.texts,
    '2026-01-31T12:00:00Z',
    '2026-02-30T12:00:00Z',
    [],
    [1],
    ['a'],
    {},
    { a: 'b' },
    { a: 1 },
    { preset: 'form' },
    { schedule_seconds: [1, 0.01] },
  ]);
}

/** A value that fits, of which now and then a field somewhere is made another. */
function nearly(random: SeededRandom, value: unknown): unknown {
  if (random.chance(0.15)) return odd(random);
  if (Array.isArray(value)) return value.map((item) => nearly(random, item));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, field]) => [name, nearly(random, field)]);
  if (random.chance(0.1)) entries.push([random.pick(['x', 'idempotency_key', 'jitter']), odd(random)]);
  return Object.fromEntries(entries);
}

/** The refusal, or null when it is taken. */
function refusalOf(read: () => unknown): AppError | null {
  try {
    read();
    return null;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

const readPolicy = (body: unknown) => refusalOf(() => readDeliveryPolicy(body as object, LIMITS));

function readEvent(body: unknown): AppError | null {
  const bytes = Buffer.from(JSON.stringify(body));
  const rules = { eventBytesMax: EVENT_LIMITS.eventBytesMax, nowMs: Date.now(), path: '', takesKey: false };
  return refusalOf(() => readEnvelope(bytes, scanJson(bytes), rules));
}

function readWhole(body: unknown): AppError | null {
  return refusalOf(() => {
    const { items } = readBatch(Buffer.from(JSON.stringify(body)), EVENT_LIMITS);
    for (const item of items) if (item instanceof AppError) throw item;
  });
}

const PAIRS = [
  ['PatchEndpoint', readPolicy],
  ['PublishEvent', readEvent],
  ['PublishBatch', readWhole],
] as const;

/** Bodies of one schema, most of them a little off. */
function bodies(name: string, random: SeededRandom): unknown[] {
  const schema = DOCUMENT.components.schemas[name]!;
  return Array.from({ length: ROUNDS }, () => {
    const fitting = fittingValue(schema, random, sources) as Record<string, unknown>;
    const body = random.chance(0.5) ? fitting : nearly(random, fitting);
    if (name !== 'PatchEndpoint') return body;
    // What else there is of an endpoint is read by others.
    const fields = typeof body === 'object' && body !== null ? Object.entries(body) : [];
    return Object.fromEntries(fields.filter(([field]) => POLICY_FIELDS.includes(field)));
  });
}

describe('a body', () => {
  it.each(PAIRS)('that fits %s is taken, and what is taken fits it', (name, read) => {
    const random = seededRandom(`bodies of ${name}`);
    const validate = schemaValidator(name);
    const verdicts = { both: 0, neither: 0 };
    for (const body of bodies(name, random)) {
      const refusal = read(body);
      const fits = validate(body);
      const field = refusal?.details[0]?.field ?? '';
      if (fits && BETWEEN_FIELDS.has(field)) continue;
      expect({ seed: random.seed, body, taken: refusal === null, refusal }).toMatchObject({ taken: fits });
      verdicts[fits ? 'both' : 'neither'] += 1;
    }
    expect(Math.min(verdicts.both, verdicts.neither)).toBeGreaterThan(ROUNDS / 10);
  });

  it('with a policy that is refused fits no schema, but for rules that are not of one field', () => {
    const validate = schemaValidator('PatchEndpoint');
    const fitting = REFUSED_POLICIES.filter(({ body }) => validate(body));
    expect(fitting.map(({ what }) => what)).toEqual([
      'an initial wait above the cap',
      'a connect longer than all',
      'a connect longer than all by default',
      'a total that the lease cannot hold',
    ]);
  });
});
