import { expect, it } from 'vitest';

import { ApiStage, QUICK_ATTEMPTS } from '../support/api-stage.js';
import { expectTerminal } from '../support/expect-terminal.js';
import { OCTOKIT_PAYLOAD_COUNT, type OctokitPayload, octokitPayloads } from '../support/octokit-payloads.js';
import { verifySignature } from '../support/verify-signature.js';

interface Accepted {
  readonly id: string;
  readonly deliveries: readonly { readonly id: string }[];
}

const PARALLEL = 8;
const BATCH = 25;

const stage = new ApiStage();

const typeOf = ({ name }: OctokitPayload): string => `github.${name}`;

it('carries every example payload of GitHub through the whole product, signed and byte for byte', async () => {
  const { secret } = await stage.addEndpoint({ event_types: ['github.*'] });
  const dispatcher = await stage.bootDispatcher();
  const payloads = [...octokitPayloads()];
  const byDelivery = new Map<string, OctokitPayload>();
  const keep = (event: Accepted, payload: OctokitPayload): void => {
    expect(event.deliveries).toHaveLength(1);
    byDelivery.set(event.deliveries[0]!.id, payload);
  };

  // Through both doors: each second run of 25 goes as a batch.
  const runs = Array.from({ length: Math.ceil(payloads.length / BATCH) }, (_, index) => ({
    asBatch: index % 2 === 1,
    run: payloads.slice(index * BATCH, (index + 1) * BATCH),
  }));
  for (const { asBatch, run } of runs) {
    if (asBatch) {
      const events = run.map(
        (payload) => `{"event_type":"${typeOf(payload)}","payload":${payload.bytes.toString()}}`,
      );
      const answer = await stage.client.post<{ data: Accepted[] }>(
        '/v1/events/batch',
        `{"events":[${events.join()}]}`,
      );
      expect(answer.status).toBe(201);
      answer.body.data.forEach((event, index) => keep(event, run[index]!));
    } else {
      await inParallel(run, PARALLEL, async (payload) => {
        const answer = await stage.client.publish<Accepted>(typeOf(payload), payload.bytes);
        expect(answer.status).toBe(201);
        keep(answer.body, payload);
      });
    }
  }

  expect(byDelivery.size).toBe(OCTOKIT_PAYLOAD_COUNT);
  await stage.receiver.waitFor(OCTOKIT_PAYLOAD_COUNT);
  await expectTerminal(stage.pool, {
    receivers: [stage.receiver],
    apps: [stage.api, dispatcher],
    attemptLimit: QUICK_ATTEMPTS,
  });
  expect(stage.receiver.requests).toHaveLength(OCTOKIT_PAYLOAD_COUNT);
  for (const [deliveryId, payload] of byDelivery) {
    const [request] = stage.receiver.requestsFor(deliveryId);
    expect({ payload: payload.name, same: request?.body.equals(payload.bytes) }).toEqual({
      payload: payload.name,
      same: true,
    });
    expect(request!.header('content-type')).toBe('application/json');
    expect(request!.header('waybill-event-type')).toBe(typeOf(payload));
    verifySignature(request!, secret);
  }
  const other = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
  expect(() => verifySignature(stage.receiver.requests[0]!, other)).toThrow(/signature/i);
});

async function inParallel<Item>(
  items: readonly Item[],
  lanes: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
    }),
  );
}
