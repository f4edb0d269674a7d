import { URL_CHARACTERS_MAX } from '#egress';
import {
  ATTEMPTS,
  DESCRIPTION_CHARACTERS_MAX,
  ENTRY,
  EVENT_TYPE_CHARACTERS_MAX,
  POLICY_BOUNDS,
  RETRY_WAITS_MAX,
  SUBSCRIPTION_ENTRIES_MAX,
  WAIT_SECONDS,
} from '#endpoints';
import { count, time, within, type Words } from './word.js';

/** Endpoints, and how they are delivered to. */
export const ENDPOINT_WORDS: Words = {
  url: {
    description: 'Where deliveries go: https and public, unless the operator allows more.',
    // No format: what the URL standard takes, and gives back, is more than the `uri` of JSON Schema.
    pattern: '^[Hh][Tt][Tt][Pp][Ss]?://',
    maxLength: URL_CHARACTERS_MAX,
    examples: ['https://example.com/hooks'],
  },
  description: {
    description: 'For people.',
    maxLength: DESCRIPTION_CHARACTERS_MAX,
    examples: ['ERP'],
  },
  event_types: {
    description:
      'The event types it wants. In an entry `*` is one segment or, as the last, one or more. Left out, null, an empty list and `*` are everything.',
    maxItems: SUBSCRIPTION_ENTRIES_MAX,
    items: { pattern: ENTRY.source, maxLength: EVENT_TYPE_CHARACTERS_MAX },
    examples: [['invoice.paid', 'order.*']],
  },
  filter: {
    description:
      'What a payload must be like to be delivered: paths with values or operators, `$and`, `$or`, `$not`. Null takes all.',
    examples: [{ 'order.total': { $gte: 100 } }],
  },
  status: {
    examples: ['enabled'],
    description:
      '`paused`: deliveries wait and drain when it is enabled. `disabled`: no delivery for new events, and what is queued waits.',
  },
  disabled_reason: { description: 'Why Waybill itself disabled it; null unless it did.', examples: [null] },
  secret: {
    description:
      'What deliveries are signed with: `whsec_` and the base64 of 24 to 64 bytes. Made when none is given.',
    pattern: '^whsec_[A-Za-z0-9+/]+={0,2}$',
    minLength: 38,
    maxLength: 94,
    examples: ['whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz'],
  },
  revision: { ...count('Counts the destinations it has had.', 1), minimum: 1 },
  version: { ...count('Counts every change; the ETag.', 1), minimum: 1 },
  circuit_state: { description: 'What is known of its failures.' },
  consecutive_failures: count('Failures in a row.', 0),
  open_until: time('When a probe may be sent; null unless the circuit is open.', null),
  failing_since: time('Since when it has done nothing but fail.', null),
  held_until: time('Until when the receiver asked to be left alone.', null),
  retry: {
    description: "When failed deliveries are tried again; null is the platform's default.",
    examples: [null],
  },
  preset: { description: 'A policy by its name; it is stored as what it stands for.', examples: ['outbox'] },
  schedule_seconds: {
    description: 'One wait for each retry.',
    minItems: 1,
    maxItems: RETRY_WAITS_MAX,
    items: { minimum: WAIT_SECONDS.min, maximum: WAIT_SECONDS.max },
    examples: [[5, 300, 1800]],
  },
  initial_seconds: within('The first wait.', WAIT_SECONDS, 2),
  cap_seconds: within('The longest wait; at least the first.', WAIT_SECONDS, 3_600),
  max_attempts: within('Attempts, the first one included.', ATTEMPTS, 16),
  jitter: {
    description:
      'How far a wait is spread: by that part of it up and down, or `full`: anything up to all of it.',
    minimum: 0,
    maximum: 1,
    examples: [0.2],
  },
  retry_on: {
    description:
      '`any`: whatever is not 2xx. `transient`: no answer, 5xx, 408, 425 and 429; any other answer is final.',
    examples: ['any'],
  },
  max_age_seconds: within('What is owed for so long is dead.', POLICY_BOUNDS.max_age_seconds, null),
  timeout: { description: 'How long one attempt may take.', examples: [null] },
  connect_ms: within('For lookup, connect and TLS; at most `total_ms`.', POLICY_BOUNDS.connect_ms, 5_000),
  total_ms: within('For all of it; the lease sets a lower bound than this.', POLICY_BOUNDS.total_ms, 15_000),
  rate_per_second: within('Attempts a second, over all dispatchers.', POLICY_BOUNDS.rate_per_second, null),
  concurrency: within('Requests under way at once.', POLICY_BOUNDS.concurrency, null),
  circuit: { description: 'When its circuit opens; `off` for none.', examples: [null] },
  failures: within('Failures in a row that open it.', POLICY_BOUNDS.failures, 5),
  failure_ratio: within(
    'The part of a minute of attempts whose failure opens it.',
    POLICY_BOUNDS.failure_ratio,
    null,
  ),
  open_seconds: within('How long it stays open before a probe.', POLICY_BOUNDS.open_seconds, 30),
};
