import net from 'node:net';
import { afterEach } from 'vitest';
import {
  createSender,
  parseEgressPolicy,
  type Lookup,
  type OutgoingRequest,
  type Sender,
  type SenderOptions,
} from '#egress';
import { startRawReceiver, type RawReceiver, type RawRequest } from './raw-receiver.js';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Runs this after the current test, the last one given first. */
export function afterThisTest(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** A sender that may reach what is listed, http allowed; closed after the test. */
export function openSender(
  allow: string[],
  lookup: Lookup = answering([]),
  options: Partial<SenderOptions> = {},
): Sender {
  const policy = parseEgressPolicy({ allow, deny: [], allowHttp: true });
  const sender = createSender({ policy, lookup, ...options });
  afterThisTest(() => sender.close());
  return sender;
}

/** A receiver on loopback; closed after the test. */
export async function openReceiver(
  answer: (request: RawRequest) => void,
  address?: string,
): Promise<RawReceiver> {
  const receiver = await startRawReceiver(answer, address);
  afterThisTest(() => receiver.close());
  return receiver;
}

/** A small request with generous times. */
export function requestTo(url: string, changes: Partial<OutgoingRequest> = {}): OutgoingRequest {
  return {
    tenantId: 'tnt_1',
    url,
    headers: [],
    body: Buffer.from('{}'),
    connectTimeoutMs: 5_000,
    totalTimeoutMs: 10_000,
    ...changes,
  };
}

/** A lookup that answers the n-th call with the n-th list of addresses, and with the last one from then on. */
export function answering(...lists: string[][]): Lookup {
  let calls = 0;
  return async () => {
    const list = lists[Math.min(calls, lists.length - 1)] ?? [];
    calls += 1;
    return list.map((address) => ({ address, family: net.isIP(address) }));
  };
}
