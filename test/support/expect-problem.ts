import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';

import { expect } from 'vitest';

/** A problem+json as RFC 9457 and our reference have it. */
export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly request_id: string;
  readonly details?: readonly { readonly field: string; readonly reason: string }[];
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const MEMBERS = ['type', 'title', 'status', 'detail', 'code', 'request_id', 'details'];

/** What an answer must never tell: statements, the driver's words, places in our files, stacks. Names of operator events are public. */
const INSIDES =
  /waybill\.(?!endpoint\.|delivery\.)[a-z_]+\b|\b(?:select|insert into|update|delete from) [a-z]|node_modules|node:internal|\/(?:src|dist|libs|apps)\/|\.(?:js|ts):\d|\n\s+at |(?:Type|Syntax|Range|Reference)Error|SQLSTATE|relation "|column "/;

const REFERENCE = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8');

const LISTED = new Map(
  [...REFERENCE.matchAll(/^\| `(\w+)` +\| (\d+) +\|/gm)].map((line) => [line[1]!, Number(line[2])]),
);

const REASONS = new Set(
  [...REFERENCE.split('## Reasons')[1]!.matchAll(/^\| (`.+?) +\|/gm)].flatMap((line) =>
    line[1]!.split(', ').map((word) => word.replaceAll('`', '')),
  ),
);

/** A word that the reference lists, or the delivery that stands in the way. */
const isReason = (reason: string): boolean => REASONS.has(reason) || /^dlv_[0-9a-f]{32}$/.test(reason);

/**
 * Row 89's envelope: problem+json with a code that the reference lists under this status, the request's id, and
 * nothing of our insides. Gives the body.
 */
export function expectProblem(answer: Answer, status: number, code: string): ProblemBody {
  const body = expectAnyProblem(answer);
  expect({ status: answer.status, code: body.code }).toEqual({ status, code });
  return body;
}

/** The same for whatever refusal it is. */
export function expectAnyProblem(answer: Answer): ProblemBody {
  expect(`${answer.headers['content-type']} ${answer.text}`).toMatch(/^application\/problem\+json \{/);
  const body = JSON.parse(answer.text) as ProblemBody;
  expect({ code: body.code, status: LISTED.get(body.code) }).toEqual({
    code: body.code,
    status: answer.status,
  });
  expect(body).toMatchObject({ type: `/errors/${body.code}`, status: answer.status });
  expect(Object.keys(body).filter((name) => !MEMBERS.includes(name))).toEqual([]);
  expect([typeof body.title, typeof body.detail]).toEqual(['string', 'string']);
  expect(body.request_id).toBe(answer.headers['x-request-id']);
  for (const { reason } of body.details ?? []) expect(reason).toSatisfy(isReason);
  expect(answer.text).not.toMatch(INSIDES);
  if (answer.status === 401) expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
  if (answer.status === 503) expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1);
  return body;
}
