import { beforeAll, describe, expect, it } from 'vitest';

import type { ApiClient, ApiResponse } from '../support/api-client.js';
import { ApiStage, type CreatedEndpoint, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { expectTerminal } from '../support/expect-terminal.js';
import {
  type DocumentOperation,
  type DocumentSchema,
  OPERATIONS,
  resolveSchema,
} from '../support/openapi-document.js';
import { tenantRows } from '../support/row-counts.js';
import { createTenantWithKey } from '../support/tenant.js';

/** Where an id may stand in a request: in the path, in the query, in the body. */
interface Slot {
  readonly place: 'path' | 'query' | 'body';
  readonly name: string;
  /** The prefix of the ids that fit. */
  readonly kind: string;
}

/** One thing of each kind, by the prefix of its id. */
type Things = Readonly<Record<string, string>>;

interface Tenant {
  readonly tenantId: string;
  readonly client: ApiClient;
  readonly things: Things;
}

const stage = new ApiStage();
let ours: Tenant;
let theirs: Tenant;

beforeAll(async () => {
  const other = await createTenantWithKey(stage.database.url, { name: 'theirs' });
  ours = await furnish(stage.tenant.tenantId, stage.client);
  theirs = await furnish(other.tenantId, stage.clientOf(stage.api, other.key));
  // All deliveries die, so that there are attempts and dead letters to reach for.
  stage.receiver.answer(500);
  const dispatcher = await stage.bootDispatcher();
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  await dispatcher.stop();
});

async function furnish(tenantId: string, client: ApiClient): Promise<Tenant> {
  const endpoint = await stage.addEndpoint({ description: 'furniture' }, client);
  const [consumer, key, secrets] = await Promise.all([
    client.post<{ id: string }>('/v1/consumers', { uid: 'same-uid' }),
    client.post<{ id: string }>('/v1/keys', { name: 'furniture', scopes: ['events:read'] }),
    client.get<{ data: { id: string }[] }>(`/v1/endpoints/${endpoint.id}/secrets`),
  ]);
  await stage.addEndpoint({ consumer: consumer.body.id }, client);
  let published: ApiResponse<{ id: string; deliveries: { id: string; endpoint_id: string }[] }> | undefined;
  for (let count = 0; count < 3; count += 1) published = await client.publish('thing.made', { count });
  // Made after the events, so that one of them may be delivered to it.
  const later: CreatedEndpoint = await stage.addEndpoint({ event_types: ['never.sent'] }, client);
  return {
    tenantId,
    client,
    things: {
      ep_: endpoint.id,
      later_: later.id,
      con_: consumer.body.id,
      key_: key.body.id,
      sec_: secrets.body.data[0]!.id,
      evt_: published!.body.id,
      dlv_: published!.body.deliveries[0]!.id,
    },
  };
}

const GUARDED = OPERATIONS.filter(({ scope }) => scope !== null);

/** Every place of an operation where an id may stand, as the document says it. */
function slotsOf({ path, parameters, body }: DocumentOperation): Slot[] {
  const named = parameters.flatMap(({ in: place, name, schema }) => {
    const kind = place === 'header' ? null : kindOf(name, schema, path);
    return kind === null ? [] : [{ place: place as 'path' | 'query', name, kind }];
  });
  const properties = (body === null ? {} : resolveSchema(body.schema)['properties']) ?? {};
  const inBody = Object.entries(properties).flatMap(([name, schema]: [string, DocumentSchema]) => {
    const kind = kindOf(name, schema, '');
    return kind === null ? [] : [{ place: 'body' as const, name, kind }];
  });
  return [...named, ...inBody];
}

function kindOf(name: string, schema: DocumentSchema, path: string): string | null {
  // A consumer goes by its uid as well, so the document has no pattern for it.
  if (name === 'consumer' || (name === 'id' && path.startsWith('/v1/consumers/'))) return 'con_';
  return /^\^([a-z]+_)\[0-9a-f\]\{32\}/.exec(String(schema['pattern']))?.[1] ?? null;
}

/** An id of that kind and moment that nobody has. */
function nobodys(id: string): string {
  const flipped = (Number.parseInt(id.slice(-1), 16) ^ 0xf).toString(16);
  return id.slice(0, -1) + flipped;
}

/** Asks as our tenant, with our own things everywhere but in one slot. */
async function ask(
  operation: DocumentOperation,
  slot: Slot | null,
  id: string,
): Promise<ApiResponse<unknown>> {
  const idFor = (each: Slot): string => {
    if (slot !== null && each.place === slot.place && each.name === slot.name) return id;
    const wants = operation.id === 'addDelivery' && each.place === 'body' ? 'later_' : each.kind;
    return ours.things[wants] ?? '';
  };
  const slots = slotsOf(operation);
  let target = operation.path;
  for (const each of slots.filter(({ place }) => place === 'path'))
    target = target.replace(`{${each.name}}`, idFor(each));
  const asked = slots.filter((each) => each.place === 'query' && each.name === slot?.name);
  if (asked.length > 0) target += `?${asked.map((each) => `${each.name}=${idFor(each)}`).join('&')}`;
  const required = (operation.body && resolveSchema(operation.body.schema)['required']) as
    string[] | undefined;
  const inBody = slots
    .filter((each) => each.place === 'body')
    .filter((each) => each.name === slot?.name || required?.includes(each.name))
    .map((each) => [each.name, idFor(each)]);
  const example = operation.body?.example as Record<string, unknown> | undefined;
  const body = example && { ...withoutIds(example, slots), ...Object.fromEntries(inBody) };
  const { client } = ours;
  switch (operation.method) {
    case 'get':
      return client.get(target);
    case 'delete':
      return client.delete(target);
    case 'patch':
      return client.patch(target, body);
    default:
      return client.post(target, body);
  }
}

function withoutIds(example: Record<string, unknown>, slots: readonly Slot[]): Record<string, unknown> {
  const inBody = new Set(slots.filter(({ place }) => place === 'body').map(({ name }) => name));
  return Object.fromEntries(Object.entries(example).filter(([name]) => !inBody.has(name)));
}

/** An answer without what differs between any two requests, and without the id that was asked for. */
function comparable({ status, headers, text }: ApiResponse<unknown>, id: string): object {
  const { date: _date, 'x-request-id': requestId, 'content-length': _length, etag: _etag, ...rest } = headers;
  return {
    status,
    headers: rest,
    text: text
      .replaceAll(String(requestId), 'REQUEST')
      .replaceAll(id, 'ID')
      .replaceAll(/"settled_until":"[^"]*"/g, 'SETTLED'),
  };
}

const CASES = GUARDED.flatMap((operation) =>
  slotsOf(operation).map((slot): [string, DocumentOperation, Slot] => [
    `${operation.id}: ${slot.place} ${slot.name}`,
    operation,
    slot,
  ]),
);

describe("[row 67] another tenant's id, in every place of every route that the document has,", () => {
  it('is asked for in many places', () => {
    expect(CASES.length).toBeGreaterThan(25);
    expect(new Set(CASES.map(([, , { kind }]) => kind))).toEqual(
      new Set(['evt_', 'dlv_', 'ep_', 'sec_', 'key_', 'con_']),
    );
  });

  it.each(CASES)(
    '%s: answers as an id of nobody does, and leaves their rows alone',
    async (_, operation, slot) => {
      const id = theirs.things[slot.kind]!;
      const before = await tenantRows(stage.pool, theirs.tenantId);
      const foreign = await ask(operation, slot, id);
      const unknown = await ask(operation, slot, nobodys(id));
      expect(comparable(foreign, id)).toEqual(comparable(unknown, nobodys(id)));
      expect(await tenantRows(stage.pool, theirs.tenantId)).toEqual(before);
      // What is refused, or empty, for a foreign id is there for our own: the request itself is a good one.
      if (slot.place === 'path') expect(foreign.status).toBe(404);
    },
  );
});

const LISTS = GUARDED.filter(({ parameters }) => parameters.some(({ name }) => name === 'cursor'));

describe("another tenant's cursor", () => {
  it.each(LISTS.map((operation): [string, DocumentOperation] => [operation.id, operation]))(
    'is refused by %s as any that the list did not make',
    async (_, operation) => {
      const target = (tenant: Tenant): string =>
        slotsOf(operation)
          .filter(({ place }) => place === 'path')
          .reduce((path, { name, kind }) => path.replace(`{${name}}`, tenant.things[kind]!), operation.path);
      const page = await theirs.client.get<{ next_cursor: string | null }>(`${target(theirs)}?limit=1`);
      expect(page.status).toBe(200);
      // Of a list with one entry there is none; then one of another of their lists is tried.
      const events = await theirs.client.get<{ next_cursor: string }>('/v1/events?limit=1');
      const cursor = page.body.next_cursor ?? events.body.next_cursor;
      const answer = await ours.client.get(`${target(ours)}?cursor=${cursor}`);
      expect(answer).toMatchObject({ status: 422, body: { code: 'invalid_cursor' } });
    },
  );
});

it('our own ids are found in the same places: the requests are good ones', async () => {
  const reads = CASES.filter(([, { method }, { place }]) => method === 'get' && place === 'path');
  expect(reads.length).toBeGreaterThan(6);
  for (const [name, operation, slot] of reads) {
    const answer = await ask(operation, slot, ours.things[slot.kind]!);
    expect(answer.status, name).toBe(200);
  }
  const changes = CASES.filter(
    ([, { method, id }, { place }]) => method !== 'get' && place === 'path' && id !== 'revokeSecret',
  );
  for (const [name, operation, slot] of changes) {
    const answer = await ask(operation, slot, ours.things[slot.kind]!);
    // Some stand in one another's way by now (409); none is unknown, and none is a bad request.
    expect([200, 201, 202, 204, 404, 409], name).toContain(answer.status);
  }
});
