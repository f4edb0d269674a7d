import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { expectDrained } from '../support/expect-drained.js';
import { BRISK, BRISK_ATTEMPTS, expectStatus, openPlatform, type Platform } from '../support/platform.js';
import type { ReceivedRequest, Receiver } from '../support/receiver.js';
import { waitFor } from '../support/wait-for.js';

interface MadeSecret {
  readonly id: string;
  readonly secret: string;
}

let platform: Platform;
beforeAll(async () => {
  platform = await openPlatform();
  await Promise.all([
    platform.bootApi({ WAYBILL_LOG_LEVEL: 'trace' }),
    platform.bootDispatcher({ ...BRISK, WAYBILL_LOG_LEVEL: 'trace' }),
  ]);
});
afterAll(() => platform.close());

let opened = 0;

/** An endpoint with a receiver and an event type of its own. */
class Line {
  readonly receiver: Receiver;
  readonly path: string;
  readonly secret: string;
  readonly #type: string;

  constructor(receiver: Receiver, endpoint: { id: string; secret: string }, type: string) {
    this.receiver = receiver;
    this.path = `/v1/endpoints/${endpoint.id}/secrets`;
    this.secret = endpoint.secret;
    this.#type = type;
  }

  static async open(): Promise<Line> {
    const type = `rotated.line${(opened += 1)}`;
    const receiver = await platform.startReceiver();
    return new Line(receiver, await platform.addEndpoint(receiver.url, { event_types: [type] }), type);
  }

  async rotate(body: object = {}): Promise<MadeSecret> {
    return expectStatus(await platform.client.post<MadeSecret>(this.path, body), 201);
  }

  async revoke(id: string): Promise<void> {
    expectStatus(await platform.client.delete(`${this.path}/${id}`), 204);
  }

  async idOf(place: number): Promise<string> {
    const { body } = await platform.client.get<{ data: MadeSecret[] }>(this.path);
    return body.data.at(place)!.id;
  }

  /** Publishes one event and gives the request that it became. */
  async send(): Promise<ReceivedRequest> {
    const event = await platform.publish('{"n":1.0}', this.#type);
    const { id } = event.deliveries[0]!;
    const requests = await this.receiver.waitFor((all) => all.some(({ deliveryId }) => deliveryId === id));
    return requests.find(({ deliveryId }) => deliveryId === id)!;
  }
}

const signaturesOf = (request: ReceivedRequest): string[] => request.header('webhook-signature')!.split(' ');

/** By which of these secrets a receiver takes a request, as both reference libraries say. */
function takenBy(request: ReceivedRequest, secrets: readonly string[]): boolean[] {
  const headers = Object.fromEntries(request.headers);
  return secrets.map((secret) => {
    const verdicts = [new StandardWebhook(secret), new SvixWebhook(secret)].map((library) => {
      try {
        library.verify(request.body, headers);
        return true;
      } catch {
        return false;
      }
    });
    expect(new Set(verdicts).size).toBe(1);
    return verdicts[0]!;
  });
}

/** What a receiver of one secret alone would have been sent as its only signature. */
function onlySignature(request: ReceivedRequest, secret: string): string {
  const seconds = Number(request.header('webhook-timestamp'));
  return new StandardWebhook(secret).sign(
    request.header('webhook-id')!,
    new Date(seconds * 1000),
    request.body,
  );
}

describe('[H25] a rotated secret', () => {
  it('signs beside the old one in the overlap, newest first, and alone after it', async () => {
    const line = await Line.open();
    expect(takenBy(await line.send(), [line.secret])).toEqual([true]);
    const { secret } = await line.rotate();
    const both = await line.send();
    expect(takenBy(both, [secret, line.secret])).toEqual([true, true]);
    expect(signaturesOf(both)).toEqual([secret, line.secret].map((each) => onlySignature(both, each)));

    // The day goes by: only the time that is stored moves, and no version tells of it.
    await platform.pool.query(
      `update waybill.endpoint_secrets set expires_at = expires_at - interval '1 day' where expires_at is not null`,
    );
    const after = await waitFor(
      async () => {
        const request = await line.send();
        return signaturesOf(request).length === 1 && request;
      },
      { what: 'the end of the overlap' },
    );
    expect(takenBy(after, [secret, line.secret])).toEqual([true, false]);
  });

  it('lets a receiver that knows the old one go on until the overlap is over, by itself', async () => {
    const line = await Line.open();
    const { secret } = await line.rotate({ overlap_seconds: 2 });
    const { rows } = await platform.pool.query<{ ends: Date }>(
      `select max(expires_at) as ends from waybill.endpoint_secrets
       where expires_at > now() and expires_at < now() + interval '1 minute'`,
    );
    const requests = [await line.send()];
    await waitFor(
      async () => {
        requests.push(await line.send());
        return signaturesOf(requests.at(-1)!).length === 1;
      },
      { what: 'the end of an overlap of two seconds' },
    );
    expect(takenBy(requests[0]!, [secret, line.secret])).toEqual([true, true]);
    expect(takenBy(requests.at(-1)!, [secret, line.secret])).toEqual([true, false]);
    // Nothing else was said to the dispatcher: it was the clock. A timestamp has whole seconds.
    const endsSeconds = rows[0]!.ends.getTime() / 1000;
    for (const request of requests) {
      const signedSecond = Number(request.header('webhook-timestamp'));
      const [byNew, byOld] = takenBy(request, [secret, line.secret]);
      expect(byNew).toBe(true);
      expect(byOld ? signedSecond < endsSeconds : signedSecond + 1 > endsSeconds).toBe(true);
    }
  });

  it('is alone at once without an overlap', async () => {
    const line = await Line.open();
    await line.send();
    const { secret } = await line.rotate({ overlap_seconds: 0 });
    const request = await line.send();
    expect(signaturesOf(request)).toEqual([onlySignature(request, secret)]);
    expect(takenBy(request, [line.secret])).toEqual([false]);
  });

  it('that is revoked signs nothing that is published from then on, while the others go on', async () => {
    const line = await Line.open();
    const second = await line.rotate();
    const third = await line.rotate();
    const all = [third.secret, second.secret, line.secret];
    const three = await line.send();
    expect(signaturesOf(three)).toEqual(all.map((each) => onlySignature(three, each)));
    await line.revoke(second.id);
    expect(takenBy(await line.send(), all)).toEqual([true, false, true]);
    await line.revoke(await line.idOf(-1));
    const last = await line.send();
    expect(takenBy(last, all)).toEqual([true, false, false]);
    expect(signaturesOf(last)).toHaveLength(1);
  });

  it('signs the retry of what was first sent before, under the same id', async () => {
    const line = await Line.open();
    let refusals = 1;
    let rotated: MadeSecret | null = null;
    line.receiver.answer(async () => {
      if (refusals === 0) return 200;
      refusals -= 1;
      rotated = await line.rotate({ overlap_seconds: 0 });
      return 500;
    });
    const first = await line.send();
    const [, second] = await line.receiver.waitFor(2);
    expect(second!.deliveryId).toBe(first.deliveryId);
    expect(takenBy(first, [line.secret, rotated!.secret])).toEqual([true, false]);
    expect(takenBy(second!, [line.secret, rotated!.secret])).toEqual([false, true]);
  });
});

describe('[H25] [row 63] every secret that was ever made here', () => {
  it('is in no table, list, detail, delivery, error or log', async () => {
    const line = await Line.open();
    const made = [line.secret, (await line.rotate()).secret];
    const given = `whsec_${Buffer.alloc(48, 0xab).toString('base64')}`;
    await line.rotate({ secret: given });
    made.push(given);
    await line.send();
    const { client } = platform;
    const endpointPath = line.path.replace('/secrets', '');
    const answers = [
      await client.get(line.path),
      await client.get(endpointPath),
      await client.get('/v1/endpoints'),
      await client.get('/v1/deliveries'),
      await client.post(line.path, { secret: `${given}x` }),
      await client.post(line.path, `{"secret":"${given}"`),
      await client.post(line.path, { secret: given, overlap_seconds: -1 }),
      await client.patch(endpointPath, { secret: given }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 422, 400, 422, 422]);
    await expectDrained(platform, { attemptLimit: BRISK_ATTEMPTS });
    const { rows: tables } = await platform.pool.query<{ name: string }>(
      `select oid::regclass::text as name from pg_class where relnamespace = 'waybill'::regnamespace and relkind = 'r'`,
    );
    const stored: string[] = [];
    for (const { name } of tables) {
      const { rows } = await platform.pool.query<{ row: string }>(`select t::text as row from ${name} t`);
      stored.push(...rows.map(({ row }) => row));
    }
    expect(stored.length).toBeGreaterThan(50);
    const said = [
      ...stored,
      ...answers.map(({ text }) => text),
      ...platform.apps.map((app) => app.logText()),
    ];
    const everything = said.join('\n');
    expect(everything).toContain('delivery.attempt');
    expect(made.flatMap(spellingsOf).filter((text) => everything.includes(text))).toEqual([]);
  });
});

/** As text, as the bytes of that text, and as the key that it stands for. */
function spellingsOf(secret: string): string[] {
  const base64 = secret.slice('whsec_'.length);
  const key = Buffer.from(base64, 'base64');
  return [base64, key.toString('hex'), key.toString('base64url'), Buffer.from(base64).toString('hex')];
}
