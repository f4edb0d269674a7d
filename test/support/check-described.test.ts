import { describe, expect, it } from 'vitest';

import { faultsOf } from './check-described.js';
import { operationOf } from './openapi-document.js';

const { example } = operationOf('readDelivery').responses['200']!.content!['application/json']!;
const DELIVERY = example as Record<string, unknown>;
const PATH = `/v1/deliveries/${String(DELIVERY['id'])}`;
const HEADERS = { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'req_1' };

const answer = (status: number, body: unknown, headers: object = HEADERS) => ({
  status,
  headers: { ...headers },
  text: typeof body === 'string' ? body : JSON.stringify(body),
});

const problem = (status: number, code: string) => ({
  type: `/errors/${code}`,
  title: 'x',
  status,
  detail: 'x',
  code,
  request_id: 'req_1',
});
const PROBLEM_HEADERS = { ...HEADERS, 'content-type': 'application/problem+json' };

describe('an answer', () => {
  it('that the document describes has no faults, in whatever case the path is written', () => {
    expect(faultsOf('GET', PATH, answer(200, DELIVERY))).toEqual([]);
    expect(
      faultsOf('GET', `${PATH.replace('deliveries', 'Deliveries')}/?x=1`, answer(200, DELIVERY)),
    ).toEqual([]);
    const missing = answer(404, problem(404, 'delivery_not_found'), PROBLEM_HEADERS);
    expect(faultsOf('GET', PATH, missing)).toEqual([]);
    expect(
      faultsOf('GET', '/nowhere', answer(404, problem(404, 'route_not_found'), PROBLEM_HEADERS)),
    ).toEqual([]);
  });

  it.each<[string, ReturnType<typeof answer>]>([
    ['a status that is not documented', answer(202, DELIVERY)],
    ['a field that is not described', answer(200, { ...DELIVERY, more: 1 })],
    ['a field less', answer(200, { ...DELIVERY, state: undefined })],
    ['a field of another type', answer(200, { ...DELIVERY, attempt_count: 1.5 })],
    ['an id of another kind', answer(200, { ...DELIVERY, event_id: DELIVERY['id'] })],
    ['a time that is none', answer(200, { ...DELIVERY, created_at: 'yesterday' })],
    ['an inner field that is not described', answer(200, { ...DELIVERY, attempts: [{ more: 1 }] })],
    ['another media type', answer(200, DELIVERY, { ...HEADERS, 'content-type': 'text/plain' })],
    ['a header less', answer(200, DELIVERY, { 'content-type': 'application/json' })],
    ['a header that is not described', answer(200, DELIVERY, { ...HEADERS, etag: '"1"' })],
    ['a malformed header', answer(200, DELIVERY, { ...HEADERS, 'x-request-id': 'a b' })],
    ['a code of another operation', answer(404, problem(404, 'event_not_found'), PROBLEM_HEADERS)],
    ['a code that is none', answer(404, problem(404, 'nothing_found'), PROBLEM_HEADERS)],
  ])('with %s has one', (_what, wrong) => {
    expect(faultsOf('GET', PATH, wrong).length).toBeGreaterThan(0);
  });

  it('of no operation has one, unless it is a refusal', () => {
    expect(faultsOf('GET', '/v1/widgets', answer(200, DELIVERY)).length).toBeGreaterThan(0);
    const refusal = answer(404, problem(404, 'event_not_found'), PROBLEM_HEADERS);
    expect(faultsOf('GET', '/v1/widgets', refusal).length).toBeGreaterThan(0);
  });
});
