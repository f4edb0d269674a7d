import { readFile } from 'node:fs/promises';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { readDelivery } from '#outbox';

import { startRawReceiver } from '../support/raw-receiver.js';
import { addSceneEndpoint, listenFor, openScene, readersOf, type Scene } from '../support/scene.js';
import { openStage, QUICK, type Stage } from '../support/stage.js';
import { CLAIM } from '../support/statements.js';
import { waitFor } from '../support/wait-for.js';

/** The endpoints' own backoff: one second, without any chance in it. */
const OWN_MS = 1_000;
const POLICY = { concurrency: 1, retry: { schedule_seconds: [1, 1, 1], jitter: 0 } };
const HOUR_MS = 3_600_000;
/** Between the receiver's answer and the record of it. */
const RECORD_MS = 1_000;

const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toUTCString();

/** The header as it is sent, and how long the endpoint is left alone for it; null where its own backoff holds. */
const CASES: readonly (readonly [value: string, holdMs: number | null, spreadMs?: number])[] = [
  ['2', 2_000],
  ['120', 120_000],
  ['0', null],
  ['-5', null],
  ['1.5', null],
  ['9999999999', HOUR_MS],
  ['9'.repeat(400), HOUR_MS],
  // A date says whole seconds.
  ['a date 3 s ahead', 3_000, 1_000],
  [inSeconds(-60), null],
  ['Fri, 31 Dec 9999 23:59:59 GMT', HOUR_MS],
  ['soon', null],
];

let stage: Stage;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  stage = await openStage((cleanUp) => void cleanUps.push(cleanUp));
  await listenFor(stage, stage.endpointId, 'unused');
  await stage.boot({ ...QUICK, WAYBILL_POLL_MS: '1000' });
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const cpuMs = async (pid: number): Promise<number> => {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]!.split(' ');
  // utime and stime, in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) * 10;
};
const claims = (): number => [...stage.proxy.statements].find(([sql]) => sql.includes(CLAIM))?.[1] ?? 0;

/** What stands after the first answer: its delivery waits in range, and so does the one beside it. */
async function expectHeld(
  scene: Pick<Scene, 'deliveries' | 'circuit' | 'tenantId'>,
  first: { readonly at: number },
  holdMs: number | null,
  spreadMs: number,
): Promise<void> {
  const failed = await waitFor(
    async () => (await scene.deliveries()).find(({ state, leased }) => state === 'failed' && !leased),
    { what: 'the record of the first answer' },
  );
  const shown = await readDelivery(stage.pool, scene.tenantId, failed.id);
  const waitMs = shown!.nextAttemptAt!.getTime() - first.at;
  const expectedMs = Math.max(holdMs ?? 0, OWN_MS);
  expect(waitMs).toBeGreaterThanOrEqual(expectedMs - spreadMs - 20);
  expect(waitMs).toBeLessThanOrEqual(expectedMs + RECORD_MS);
  const { heldUntilMs } = (await scene.circuit())!;
  if (holdMs === null) {
    expect(heldUntilMs).toBeNull();
  } else {
    expect(heldUntilMs! - first.at).toBeGreaterThanOrEqual(holdMs - spreadMs - 20);
    expect(heldUntilMs! - first.at).toBeLessThanOrEqual(holdMs + RECORD_MS);
    expect(shown!.state).toBe('held');
  }
}

describe.concurrent.each([429, 503])('[row 41] [H07] %i with Retry-After', (status) => {
  it.for(CASES)('%s', async ([value, holdMs, spreadMs = 0], { onTestFinished }) => {
    const scene = await openScene(stage, onTestFinished, POLICY);
    let asked = 0;
    scene.receiver.answer(() => {
      const retryAfter = value === 'a date 3 s ahead' ? inSeconds(3) : value;
      return (asked += 1) === 1 ? { status, headers: { 'retry-after': retryAfter } } : 200;
    });
    await scene.publish(2);
    const [first] = await scene.receiver.waitFor(1);
    await expectHeld(scene, first!, holdMs, spreadMs);
    if ((holdMs ?? 0) > 10_000) {
      expect(scene.receiver.requests.length).toBe(1);
      return;
    }
    await scene.untilAll(['succeeded']);
    const [, second, third] = scene.receiver.requests;
    // The one beside it waits as long as the endpoint is held, and not a moment where it is not.
    if (holdMs !== null) expect(second!.at - first!.at).toBeGreaterThanOrEqual(holdMs - spreadMs - 20);
    else expect(second!.at - first!.at).toBeLessThan(OWN_MS);
    const log = scene.receiver.requests.map(({ deliveryId, at }) => `${deliveryId} ${at - first!.at}`);
    expect(third!.deliveryId, log.join('\n')).toBe(first!.deliveryId);
    expect(third!.at - first!.at, log.join('\n')).toBeGreaterThanOrEqual(
      Math.max(holdMs ?? 0, OWN_MS) - spreadMs - 20,
    );
  });

  it('twice in one answer: neither counts', async ({ onTestFinished }) => {
    const raw = await startRawReceiver(({ socket, index }) =>
      socket.write(
        index === 0
          ? `HTTP/1.1 ${status} No\r\nretry-after: 7\r\nretry-after: 9\r\ncontent-length: 0\r\n\r\n`
          : 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n',
      ),
    );
    onTestFinished(() => raw.close());
    const [url, eventType] = [`http://127.0.0.1:${raw.port}/`, `twice.${status}`];
    const { endpointId } = await addSceneEndpoint(stage, url, eventType, POLICY);
    const scene = { tenantId: stage.tenantId, ...readersOf(stage, endpointId, eventType) };
    await scene.publish(2);
    const first = await waitFor(() => raw.requests.length > 0 && { at: Date.now() }, { what: 'a request' });
    await expectHeld(scene, first, null, 100);
    await scene.untilAll(['succeeded']);
  });
});

it('[H07] costs the dispatcher next to no time while endpoints wait for an hour', async ({
  onTestFinished,
}) => {
  const { pid } = stage.dispatchers[0]!;
  const scene = await openScene(stage, onTestFinished, POLICY);
  scene.receiver.answer({ status: 503, headers: { 'retry-after': '3' } });
  await scene.publish(1);
  await scene.receiver.waitFor(1);
  const before = { cpuMs: await cpuMs(pid), claims: claims(), at: performance.now() };
  await scene.receiver.waitFor(2);
  const tookMs = performance.now() - before.at;
  expect(tookMs).toBeGreaterThan(2_500);
  // A loop would take all the time there is; looking around once a second takes some 5 % in a busy machine.
  expect((await cpuMs(pid)) - before.cpuMs).toBeLessThan(tookMs * 0.2);
  // Eight endpoints that are held are asked for once a second at most.
  expect(claims() - before.claims).toBeLessThan((tookMs / 1000 + 1) * 16);
});
