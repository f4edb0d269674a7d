import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ApiStage, type CreatedEndpoint } from '../support/api-stage.js';
import { expectAnyProblem, expectProblem } from '../support/expect-problem.js';
import { REFUSED_POLICIES } from '../support/refused-policies.js';

interface EndpointView extends CreatedEndpoint {
  readonly status: string;
  readonly disabled_reason: string | null;
  readonly revision: number;
  readonly version: number;
  readonly circuit_state?: object;
}

const stage = new ApiStage();

const DEFAULTS = {
  retry: null,
  max_age_seconds: null,
  timeout: null,
  rate_per_second: null,
  concurrency: null,
  circuit: null,
};

const BACKOFF = { initial_seconds: 0.1, cap_seconds: 60, max_attempts: 7, jitter: 'full', retry_on: 'any' };

/** One policy of everything, in the form in which it is also shown. */
const FULL = {
  retry: { schedule_seconds: [0.1, 5, 300], jitter: 0.5, retry_on: 'transient' },
  max_age_seconds: 86_400.5,
  timeout: { connect_ms: 1_000, total_ms: 4_000 },
  rate_per_second: 2.5,
  concurrency: 3,
  circuit: { failures: 9, failure_ratio: 0.75, open_seconds: 45.5 },
};

async function read(id: string): Promise<EndpointView> {
  const answer = await stage.client.get<EndpointView>(`/v1/endpoints/${id}`);
  expect(answer.status).toBe(200);
  expect(answer.headers['etag']).toBe(`"${answer.body.version}"`);
  return answer.body;
}

async function patch(id: string, body: object): Promise<EndpointView> {
  const answer = await stage.client.patch<EndpointView>(`/v1/endpoints/${id}`, body);
  expect(answer).toMatchObject({ status: 200, headers: { etag: `"${answer.body.version}"` } });
  return answer.body;
}

/** The row as the dispatcher reads it. */
async function stored(id: string): Promise<Record<string, unknown>> {
  const { rows } = await stage.pool.query(
    `select retry, max_age_ms::integer, connect_timeout_ms, attempt_timeout_ms, rate_per_second, concurrency,
       circuit_failures, circuit_failure_ratio, circuit_open_ms
     from waybill.endpoints where id = $1`,
    [id.slice('ep_'.length)],
  );
  return rows[0];
}

describe('a policy that no field can hold', () => {
  let endpoint: CreatedEndpoint;
  const everything = async () =>
    (await stage.pool.query(`select e::text as row from waybill.endpoints e order by 1`)).rows;

  let before: unknown[];

  beforeAll(async () => {
    endpoint = await stage.addEndpoint(FULL);
    before = await everything();
  });
  // Nothing of all that was stored.
  afterAll(async () => {
    expect(await everything()).toEqual(before);
  });

  it.each(REFUSED_POLICIES)('is refused by POST and by PATCH: $what', async ({ body, field, code }) => {
    const answers = [
      await stage.client.post('/v1/endpoints', { url: stage.receiver.url, ...body }),
      await stage.client.patch(`/v1/endpoints/${endpoint.id}`, body),
    ];
    for (const answer of answers) {
      const { details } = expectProblem(answer, 422, code ?? 'validation_failed');
      expect(details).toEqual([{ field, reason: expect.any(String) }]);
    }
  });

  it.each([
    ['a rate that JSON cannot hold', '"rate_per_second":1e999', 'validation_failed'],
    ['a rate that is no number', '"rate_per_second":NaN', 'invalid_json'],
    ['a rate given twice', '"rate_per_second":1,"rate_per_second":2', 'duplicate_field'],
    ['a jitter given twice', '"retry":{"schedule_seconds":[5],"jitter":0,"jitter":1}', 'duplicate_field'],
    ['110 levels', `"retry":${'['.repeat(110)}${']'.repeat(110)}`, 'json_too_deep'],
    ['a policy under another name', '"retries":{"preset":"form"}', 'unknown_field'],
    ['a reason', '"disabled_reason":null', 'unknown_field'],
    ['a state of its circuit', '"circuit_state":{"state":"closed"}', 'unknown_field'],
    ['a stored name', '"circuit_failures":0', 'unknown_field'],
  ])('is refused by POST and by PATCH as text: %s', async (_what, fields, code) => {
    const posted = `{"url":"${stage.receiver.url}",${fields}}`;
    for (const answer of [
      await stage.client.post('/v1/endpoints', posted),
      await stage.client.patch(`/v1/endpoints/${endpoint.id}`, `{${fields}}`),
    ])
      expect(expectAnyProblem(answer).code).toBe(code);
  });

  it('is named in the same way as any other field of the wrong shape', async () => {
    for (const [field, body, rule] of [
      ['url', { url: 1 }, 'must be a string'],
      ['description', { description: 1 }, 'must be a string'],
      [
        'description',
        { description: 'a'.repeat(501) },
        expect.stringMatching(/^description must have .+\.$/),
      ],
      ['status', { status: 'off' }, 'must be one of enabled, paused, disabled'],
      ['event_types', { event_types: 'a' }, 'must be a list of strings'],
      ['event_types', { event_types: ['a', 1] }, 'must be a list of strings'],
      ['event_types', { event_types: Array(101).fill('a') }, 'must be at most 100 entries'],
      ['event_types[0]', { event_types: ['a.**'] }, expect.stringMatching(/^event_types\[0\] must be .+\.$/)],
      ['concurrency', { concurrency: '1' }, 'must be a whole number from 1 to 2048'],
    ] as const) {
      for (const answer of [
        await stage.client.post('/v1/endpoints', { url: stage.receiver.url, ...body }),
        await stage.client.patch(`/v1/endpoints/${endpoint.id}`, body),
      ])
        expect(expectProblem(answer, 422, 'validation_failed')).toMatchObject({
          detail: typeof rule === 'string' ? `${field} ${rule}.` : rule,
          details: [{ field, reason: 'invalid' }],
        });
    }
    const secret = await stage.client.post('/v1/endpoints', { url: stage.receiver.url, secret: 'x' });
    expect(secret.body).toMatchObject({
      detail: expect.stringMatching(/^secret must .+\.$/),
      details: [{ field: 'secret', reason: 'invalid' }],
    });
    for (const list of ['[]', 'null', '1'])
      expect(expectProblem(await stage.client.post('/v1/endpoints', list), 422, 'validation_failed')).toEqual(
        expect.objectContaining({ details: [{ field: 'body', reason: 'invalid' }] }),
      );
  });
});

describe.each(['POST', 'PATCH'])('a policy written by %s', (method) => {
  async function write(policy: object): Promise<EndpointView> {
    if (method === 'POST') return (await stage.addEndpoint(policy)) as EndpointView;
    return patch((await stage.addEndpoint()).id, policy);
  }

  it('is stored and shown, and every answer shows the same', async () => {
    const written = await write(FULL);
    expect(written).toMatchObject(FULL);
    expect(await stored(written.id)).toEqual({
      retry: FULL.retry,
      max_age_ms: 86_400_500,
      connect_timeout_ms: 1_000,
      attempt_timeout_ms: 4_000,
      rate_per_second: 2.5,
      concurrency: 3,
      circuit_failures: 9,
      circuit_failure_ratio: 0.75,
      circuit_open_ms: 45_500,
    });
    expect(await read(written.id)).toMatchObject({ ...FULL, disabled_reason: null });
    const list = await stage.client.get<{ data: EndpointView[] }>('/v1/endpoints?limit=1');
    expect(list.body.data[0]).toMatchObject({ id: written.id, ...FULL });
    expect(list.body.data[0]).not.toHaveProperty('circuit_state');
  });

  it('is stored complete when it is a preset or leaves something out', async () => {
    const outbox = {
      initial_seconds: 2,
      cap_seconds: 3_600,
      max_attempts: 16,
      jitter: 'full',
      retry_on: 'any',
    };
    const form = {
      initial_seconds: 10,
      cap_seconds: 3_600,
      max_attempts: 5,
      jitter: 0,
      retry_on: 'transient',
    };
    for (const [asked, retry] of [
      [{ preset: 'outbox' }, outbox],
      [{ preset: 'form' }, form],
      [{ preset: 'default' }, null],
      [BACKOFF, BACKOFF],
      [{ schedule_seconds: [1] }, { schedule_seconds: [1], jitter: 0.2, retry_on: 'any' }],
    ] as const) {
      const written = await write({ retry: asked });
      expect(written).toMatchObject({ ...DEFAULTS, retry });
      expect((await stored(written.id))['retry']).toEqual(retry);
    }
    const some = await write({ timeout: { total_ms: 100 }, circuit: { failures: 1 } });
    expect(some).toMatchObject({
      timeout: { connect_ms: null, total_ms: 100 },
      circuit: { failures: 1, failure_ratio: null, open_seconds: null },
    });
    const off = await write({ circuit: 'off' });
    expect(off).toMatchObject({ ...DEFAULTS, circuit: 'off' });
    expect(await stored(off.id)).toMatchObject({ circuit_failures: 0, circuit_open_ms: null });
  });

  it('is taken at both ends of every bound: what passes the api passes the database', async () => {
    const waits = Array.from({ length: 50 }, () => 2_592_000);
    const least = {
      retry: { ...BACKOFF, max_attempts: 1 },
      max_age_seconds: 1,
      timeout: { connect_ms: 50, total_ms: 100 },
      rate_per_second: 0.001,
      concurrency: 1,
      circuit: { failures: 1, failure_ratio: 0.01, open_seconds: 0.1 },
    };
    const most = {
      retry: { schedule_seconds: waits, jitter: 1, retry_on: 'any' },
      max_age_seconds: 7_776_000,
      timeout: { connect_ms: 58_000, total_ms: 58_000 },
      rate_per_second: 10_000,
      concurrency: 2_048,
      circuit: { failures: 1_000, failure_ratio: 1, open_seconds: 3_600 },
    };
    for (const policy of [least, most]) expect(await write(policy)).toMatchObject(policy);
  });
});

describe('a change of policy', () => {
  it('is a new version for each field, and none where nothing changes; only a URL is a new revision', async () => {
    const { id } = await stage.addEndpoint();
    let { version } = await read(id);
    for (const [name, value] of Object.entries(FULL)) {
      version += 1;
      expect(await patch(id, { [name]: value })).toMatchObject({ version, revision: 1, [name]: value });
      expect(await patch(id, { [name]: value })).toMatchObject({ version, revision: 1 });
    }
    expect(await patch(id, FULL)).toMatchObject({ version, revision: 1 });
    version += 1;
    expect(await patch(id, { ...FULL, retry: BACKOFF, concurrency: 4 })).toMatchObject({ version });
    version += 1;
    const moved = await patch(id, { url: `${stage.receiver.url}/moved` });
    expect(moved).toMatchObject({ ...FULL, retry: BACKOFF, concurrency: 4, version, revision: 2 });
    expect(await patch(id, DEFAULTS)).toMatchObject({ ...DEFAULTS, version: version + 1, revision: 2 });
  });

  it('takes the answer of a GET as it is', async () => {
    for (const policy of [FULL, { circuit: 'off', timeout: { total_ms: 900 }, retry: BACKOFF }, {}]) {
      const { id } = await stage.addEndpoint(policy);
      const before = await read(id);
      const fields = ['url', 'description', 'event_types', 'status', ...Object.keys(DEFAULTS)];
      const same = Object.fromEntries(Object.entries(before).filter(([name]) => fields.includes(name)));
      expect(await patch(id, same)).toMatchObject({ ...same, version: before.version });
    }
  });

  it('of two that expect the same version one is made', async () => {
    const { id } = await stage.addEndpoint();
    const { version } = await read(id);
    const answers = await Promise.all(
      [1, 2].map((concurrency) =>
        stage.client.patch(`/v1/endpoints/${id}`, { concurrency }, { 'if-match': `"${version}"` }),
      ),
    );
    expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['200', '412']);
  });

  it('takes the tokens away with the rate', async () => {
    const { id } = await stage.addEndpoint({ rate_per_second: 5 });
    const tokens = async () =>
      (await stage.pool.query('select 1 from waybill.rate_tokens where endpoint_id = $1', [id.slice(3)]))
        .rows;
    await stage.pool.query('insert into waybill.rate_tokens values ($1, $2, 3, now())', [
      stage.tenant.tenantId,
      id.slice(3),
    ]);
    await patch(id, { rate_per_second: 6, concurrency: null });
    expect(await tokens()).toHaveLength(1);
    await patch(id, { rate_per_second: null });
    expect(await tokens()).toHaveLength(0);
  });
});

const CLOSED = {
  state: 'closed',
  consecutive_failures: 0,
  open_until: null,
  failing_since: null,
  held_until: null,
};

/** An endpoint that has failed, as the dispatchers leave it. */
async function failingEndpoint({ openFor = '30 s', probe = false } = {}): Promise<string> {
  const { id } = await stage.addEndpoint();
  await stage.pool.query(
    `insert into waybill.circuits (tenant_id, endpoint_id, state, consecutive_failures, failing_since, open_until,
       probe_token, probe_until, probe_event_id, held_until, gone_at)
     values ($1, $2, 'open', 7, now() - interval '2 h', now() + $3::interval,
       case when $4 then gen_random_uuid() end, case when $4 then now() + interval '9 s' end,
       case when $4 then gen_random_uuid() end, now() + interval '1 h', now())`,
    [stage.tenant.tenantId, id.slice(3), openFor, probe],
  );
  return id;
}

async function circuitOf(id: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await stage.pool.query(
    `select state, consecutive_failures, failing_since, open_until, probe_token, probe_until, probe_event_id,
       held_until, gone_at, closed_at > now() - interval '1 min' as closed_now
     from waybill.circuits where endpoint_id = $1`,
    [id.slice(3)],
  );
  return rows[0];
}

const FORGOTTEN = {
  state: 'closed',
  consecutive_failures: 0,
  failing_since: null,
  open_until: null,
  probe_token: null,
  probe_until: null,
  probe_event_id: null,
  held_until: null,
  gone_at: null,
  closed_now: true,
};

describe("an endpoint's circuit", () => {
  it('is shown closed, open, and half open when its time is over or a probe is under way', async () => {
    expect((await read((await stage.addEndpoint()).id)).circuit_state).toEqual(CLOSED);
    const time = expect.stringMatching(/^\d{4}-.*Z$/);
    const open = { consecutive_failures: 7, open_until: time, failing_since: time, held_until: time };
    for (const [circuit, state] of [
      [{}, 'open'],
      [{ openFor: '-1 s' }, 'half_open'],
      [{ openFor: '30 s', probe: true }, 'half_open'],
    ] as const)
      expect((await read(await failingEndpoint(circuit))).circuit_state).toEqual({ ...open, state });
    const quiet = await failingEndpoint();
    await stage.pool.query(
      `update waybill.circuits set state = 'closed', open_until = null, held_until = now() - interval '1 s'
       where endpoint_id = $1`,
      [quiet.slice(3)],
    );
    expect((await read(quiet)).circuit_state).toEqual({
      ...CLOSED,
      consecutive_failures: 7,
      failing_since: time,
    });
  });

  it.each(['gone', 'failing'])(
    '[row 47] closes when somebody enables what Waybill disabled as %s',
    async (reason) => {
      const id = await failingEndpoint({ probe: true });
      await stage.pool.query(
        `update waybill.endpoints set status = 'disabled', disabled_reason = $2, version = version + 1 where id = $1`,
        [id.slice(3), reason],
      );
      const before = await read(id);
      expect(before).toMatchObject({ status: 'disabled', disabled_reason: reason });
      expect(await patch(id, { concurrency: 2 })).toMatchObject({ disabled_reason: reason });
      expect(await patch(id, { status: 'enabled' })).toMatchObject({
        status: 'enabled',
        disabled_reason: null,
        version: before.version + 2,
      });
      expect(await circuitOf(id)).toEqual(FORGOTTEN);
      expect((await read(id)).circuit_state).toEqual(CLOSED);
    },
  );

  it('closes when somebody enables what is enabled already, which is no new version', async () => {
    const id = await failingEndpoint({ probe: true });
    const { version } = await read(id);
    expect(await patch(id, { status: 'enabled' })).toMatchObject({ version });
    expect(await circuitOf(id)).toEqual(FORGOTTEN);
  });

  it('stays as it is when another status or another field is written', async () => {
    const id = await failingEndpoint();
    const before = await circuitOf(id);
    for (const body of [{ status: 'paused' }, { status: 'disabled' }, FULL, { circuit: null }])
      await patch(id, body);
    expect(await circuitOf(id)).toEqual(before);
  });

  it('stays as it is when the change is refused', async () => {
    const id = await failingEndpoint();
    const before = await circuitOf(id);
    const stale = await stage.client.patch(
      `/v1/endpoints/${id}`,
      { status: 'enabled' },
      { 'if-match': '"999"' },
    );
    expectProblem(stale, 412, 'stale_version');
    expect(await circuitOf(id)).toEqual(before);
  });

  it('closes when it is switched off; what the receiver asked for still holds', async () => {
    const id = await failingEndpoint({ probe: true });
    const before = await circuitOf(id);
    await patch(id, { circuit: 'off' });
    const { failing_since, held_until, gone_at } = before!;
    expect(await circuitOf(id)).toEqual({ ...FORGOTTEN, failing_since, held_until, gone_at });
  });

  it('goes with its endpoint', async () => {
    const id = await failingEndpoint();
    expect((await stage.client.delete(`/v1/endpoints/${id}`)).status).toBe(204);
    expect(await circuitOf(id)).toBeUndefined();
  });
});

it("[row 47] a person's own word takes the place of Waybill's reason", async () => {
  for (const status of ['disabled', 'paused']) {
    const { id } = await stage.addEndpoint();
    await stage.pool.query(
      `update waybill.endpoints set status = 'disabled', disabled_reason = 'failing' where id = $1`,
      [id.slice(3)],
    );
    const { version } = await read(id);
    expect(await patch(id, { status })).toMatchObject({
      status,
      disabled_reason: null,
      version: version + 1,
    });
  }
});
