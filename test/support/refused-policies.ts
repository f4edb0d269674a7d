/** A part of an endpoint's body that no way of writing it may take, and the field that the refusal names. */
export interface RefusedPolicy {
  readonly what: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly field: string;
  readonly code?: 'unknown_field';
}

const BACKOFF = { initial_seconds: 2, cap_seconds: 60, max_attempts: 3 };

/** The value with a property that JSON can give an object and a literal cannot. */
const withProto = (json: string): unknown => JSON.parse(json.replace('PROTO', '__proto__'));

const waits = (...schedule_seconds: unknown[]) => ({ schedule_seconds });

type Row = readonly [what: string, field: string, value: unknown];

const RETRY: readonly Row[] = [
  ['a text', 'retry', 'outbox'],
  ['a number', 'retry', 5],
  ['false', 'retry', false],
  ['a list', 'retry', [5, 300]],
  ['nothing in it', 'retry', {}],
  ['a jitter alone', 'retry', { jitter: 0.2 }],
  ['a preset nobody knows', 'retry.preset', { preset: 'turbo' }],
  ['a preset by an inherited name', 'retry.preset', { preset: 'toString' }],
  ['a preset called __proto__', 'retry.preset', { preset: '__proto__' }],
  ['a preset that is null', 'retry.preset', { preset: null }],
  ['a preset in a list', 'retry.preset', { preset: ['form'] }],
  ['a preset and a jitter', 'retry', { preset: 'form', jitter: 0 }],
  ['a preset and a schedule', 'retry', { preset: 'form', ...waits(5) }],
  ['a schedule and a backoff', 'retry', { ...waits(5), ...BACKOFF }],
  ['a schedule and attempts', 'retry', { ...waits(5), max_attempts: 2 }],
  ['a schedule of null', 'retry.schedule_seconds', { schedule_seconds: null }],
  ['a schedule that is a number', 'retry.schedule_seconds', { schedule_seconds: 5 }],
  ['a schedule that is a text', 'retry.schedule_seconds', { schedule_seconds: '5,300' }],
  ['a schedule that looks like a list', 'retry.schedule_seconds', { schedule_seconds: { length: 1, 0: 5 } }],
  ['no wait', 'retry.schedule_seconds', waits()],
  ['51 waits', 'retry.schedule_seconds', waits(...Array.from({ length: 51 }, () => 5))],
  ['10,000 waits', 'retry.schedule_seconds', waits(...Array.from({ length: 10_000 }, () => 5))],
  ['a wait of 0', 'retry.schedule_seconds[0]', waits(0)],
  ['a wait of 0 at the end', 'retry.schedule_seconds[3]', waits(5, 5, 5, 0)],
  ['a wait of -1', 'retry.schedule_seconds[1]', waits(5, -1)],
  ['a wait of -0', 'retry.schedule_seconds[0]', waits(-0)],
  ['a wait of 0.09', 'retry.schedule_seconds[0]', waits(0.09)],
  ['a wait of 1e12', 'retry.schedule_seconds[0]', waits(1e12)],
  ['a wait of 30 days and 1 s', 'retry.schedule_seconds[0]', waits(30 * 86_400 + 1)],
  ['a wait near 2^31 ms', 'retry.schedule_seconds[0]', waits(2 ** 31)],
  ['a wait as text', 'retry.schedule_seconds[0]', waits('5')],
  ['a wait of null', 'retry.schedule_seconds[1]', waits(5, null)],
  ['a wait that is a list', 'retry.schedule_seconds[0]', waits([5])],
  ['a wait that is an object', 'retry.schedule_seconds[0]', waits({ valueOf: 5 })],
  ['a wait of true', 'retry.schedule_seconds[0]', waits(true)],
  ['no cap', 'retry.cap_seconds', { initial_seconds: 2, max_attempts: 3 }],
  ['no initial wait', 'retry.initial_seconds', { cap_seconds: 2, max_attempts: 3 }],
  ['no attempts', 'retry.max_attempts', { initial_seconds: 2, cap_seconds: 3 }],
  ['an initial wait of 0', 'retry.initial_seconds', { ...BACKOFF, initial_seconds: 0 }],
  ['an initial wait of -1', 'retry.initial_seconds', { ...BACKOFF, initial_seconds: -1 }],
  ['an initial wait of null', 'retry.initial_seconds', { ...BACKOFF, initial_seconds: null }],
  ['an initial wait above the cap', 'retry.cap_seconds', { ...BACKOFF, initial_seconds: 61 }],
  ['a cap of 1e12', 'retry.cap_seconds', { ...BACKOFF, cap_seconds: 1e12 }],
  ['0 attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: 0 }],
  ['-1 attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: -1 }],
  ['101 attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: 101 }],
  ['1e9 attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: 1e9 }],
  ['2^31 attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: 2 ** 31 }],
  ['one and a half attempts', 'retry.max_attempts', { ...BACKOFF, max_attempts: 1.5 }],
  ['attempts as text', 'retry.max_attempts', { ...BACKOFF, max_attempts: '3' }],
  ['a jitter of -0.1', 'retry.jitter', { ...waits(5), jitter: -0.1 }],
  ['a jitter of 1.1', 'retry.jitter', { ...waits(5), jitter: 1.1 }],
  ['a jitter nobody knows', 'retry.jitter', { ...waits(5), jitter: 'some' }],
  ['a jitter of null', 'retry.jitter', { ...BACKOFF, jitter: null }],
  ['a choice nobody knows', 'retry.retry_on', { ...waits(5), retry_on: 'never' }],
  ['a choice of null', 'retry.retry_on', { ...waits(5), retry_on: null }],
  ['a choice in a list', 'retry.retry_on', { ...waits(5), retry_on: ['any'] }],
];

const OTHERS: readonly Row[] = [
  ['an age of 0', 'max_age_seconds', 0],
  ['an age of half a second', 'max_age_seconds', 0.5],
  ['an age of -1', 'max_age_seconds', -1],
  ['an age of 90 days and 1 s', 'max_age_seconds', 90 * 86_400 + 1],
  ['an age of 1e308', 'max_age_seconds', 1e308],
  ['an age as text', 'max_age_seconds', '60'],
  ['an age in an object', 'max_age_seconds', { seconds: 60 }],
  ['a bare timeout', 'timeout', 5_000],
  ['a timeout as text', 'timeout', '5s'],
  ['a list of timeouts', 'timeout', [1_000, 5_000]],
  ['a connect of 49 ms', 'timeout.connect_ms', { connect_ms: 49 }],
  ['a connect of 60,001 ms', 'timeout.connect_ms', { connect_ms: 60_001, total_ms: 58_000 }],
  ['a connect of 1.5', 'timeout.connect_ms', { connect_ms: 100.5 }],
  ['a connect longer than all', 'timeout.connect_ms', { connect_ms: 2_001, total_ms: 2_000 }],
  ['a connect longer than all by default', 'timeout.connect_ms', { connect_ms: 15_001 }],
  ['a total of 99 ms', 'timeout.total_ms', { total_ms: 99 }],
  ['a total of 0', 'timeout.total_ms', { connect_ms: 50, total_ms: 0 }],
  ['a total of -1', 'timeout.total_ms', { total_ms: -1 }],
  ['a total that the lease cannot hold', 'timeout.total_ms', { total_ms: 58_001 }],
  ['a total of 1e12', 'timeout.total_ms', { total_ms: 1e12 }],
  ['a total as text', 'timeout.total_ms', { total_ms: '5000' }],
  ['a rate of 0', 'rate_per_second', 0],
  ['a rate of -1', 'rate_per_second', -1],
  ['a rate of once in a thousand hours', 'rate_per_second', 1e-6],
  ['a rate of 1e9', 'rate_per_second', 1e9],
  ['a rate as text', 'rate_per_second', '10'],
  ['a rate in a list', 'rate_per_second', [10]],
  ['no concurrency', 'concurrency', 0],
  ['a concurrency of -1', 'concurrency', -1],
  ['a concurrency of 1.5', 'concurrency', 1.5],
  ['a concurrency of 1e6', 'concurrency', 1e6],
  ['a concurrency of true', 'concurrency', true],
  ['a circuit that is on', 'circuit', 'on'],
  ['a circuit of false', 'circuit', false],
  ['a circuit of 5', 'circuit', 5],
  ['a list of circuits', 'circuit', []],
  ['-1 failures', 'circuit.failures', { failures: -1 }],
  ['0 failures', 'circuit.failures', { failures: 0 }],
  ['1,001 failures', 'circuit.failures', { failures: 1_001 }],
  ['2.5 failures', 'circuit.failures', { failures: 2.5 }],
  ['a ratio of 0', 'circuit.failure_ratio', { failure_ratio: 0 }],
  ['a ratio of 1.01', 'circuit.failure_ratio', { failure_ratio: 1.01 }],
  ['a ratio as text', 'circuit.failure_ratio', { failure_ratio: '50%' }],
  ['an opening of 0', 'circuit.open_seconds', { open_seconds: 0 }],
  ['an opening of -30', 'circuit.open_seconds', { failures: 5, open_seconds: -30 }],
  ['an opening of a day', 'circuit.open_seconds', { open_seconds: 86_400 }],
];

const UNKNOWN: readonly Row[] = [
  ['an unknown field of retry', 'retry.schedule', { ...waits(5), schedule: 1 }],
  ['a field in another case', 'retry.Preset', { Preset: 'form' }],
  ['an unknown field of timeout', 'timeout.total_s', { total_s: 5 }],
  ['an unknown field of circuit', 'circuit.state', { state: 'closed' }],
  ['__proto__ in retry', 'retry.__proto__', withProto('{"PROTO":{"preset":"form"}}')],
  ['__proto__ beside a preset', 'retry.__proto__', withProto('{"preset":"form","PROTO":{}}')],
  ['constructor in retry', 'retry.constructor', { ...waits(5), constructor: { prototype: {} } }],
  ['__proto__ in timeout', 'timeout.__proto__', withProto('{"PROTO":{"total_ms":1}}')],
  ['__proto__ in circuit', 'circuit.__proto__', withProto('{"PROTO":{"failures":1}}')],
  ['toString in circuit', 'circuit.toString', { toString: 1 }],
  ['40 levels of nothing', 'circuit.a', { a: JSON.parse(`${'['.repeat(40)}${']'.repeat(40)}`) as unknown }],
];

const toRefused = ([what, field, value]: Row): RefusedPolicy => ({
  what,
  field,
  body: { [/^\w+/.exec(field)![0]]: value },
});

/** Policies that are refused under the default settings. */
export const REFUSED_POLICIES: readonly RefusedPolicy[] = [
  ...[...RETRY, ...OTHERS].map(toRefused),
  ...UNKNOWN.map((row) => ({ ...toRefused(row), code: 'unknown_field' as const })),
];
