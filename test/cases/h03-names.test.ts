import dgram from 'node:dgram';

import { describe, expect, it } from 'vitest';

import { readDelivery } from '#outbox';

import { addSceneEndpoint, listenFor, readersOf } from '../support/scene.js';
import { startReceiver } from '../support/receiver.js';
import { openStage, QUICK } from '../support/stage.js';

const A = 1;
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;

/** What the stub says to a question: a response code, an address, or nothing at all. */
type StubAnswer = { readonly code: number } | 'loopback' | 'silence';

/** A name server on loopback that answers as it is told. */
async function startNameServer(answer: () => StubAnswer) {
  const server = dgram.createSocket('udp4');
  const asked: string[] = [];
  server.on('message', (query, peer) => {
    const questionEnd = query.indexOf(0, 12) + 5;
    const type = query.readUInt16BE(questionEnd - 4);
    asked.push(query.subarray(13, questionEnd - 5).toString('latin1'));
    const said = answer();
    if (said === 'silence') return;
    const isFound = said === 'loopback' && type === A;
    const head = Buffer.from(query.subarray(0, questionEnd));
    head.writeUInt16BE(0x8180 | (said === 'loopback' ? 0 : said.code), 2);
    head.writeUInt16BE(isFound ? 1 : 0, 6);
    head.writeUInt16BE(0, 10); // without the additional record of the question
    const record = [0xc0, 12, 0, A, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1];
    server.send(Buffer.concat([head, Buffer.from(isFound ? record : [])]), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
  return { address: `127.0.0.1:${server.address().port}`, asked, close: () => void server.close() };
}

/**
 * Loaded into the dispatcher before its own code: every resolver that it makes asks our name server and no other, and
 * the ways to look names up that would ask the system's are shut. So no question can leave loopback.
 */
function onlyAsk(server: string): string {
  const code = `
    import dns from 'node:dns';
    import { syncBuiltinESMExports } from 'node:module';
    const Resolver = dns.promises.Resolver;
    dns.promises.Resolver = class extends Resolver {
      constructor(options) { super(options); super.setServers([${JSON.stringify(server)}]); }
      setServers() {}
    };
    const { lookup } = dns;
    const refuse = () => { throw new Error('this test looks no name up but by its own server'); };
    for (const name of Object.keys(dns)) if (/^(lookup|resolve|reverse)/.test(name)) dns[name] = refuse;
    for (const name of Object.keys(dns.promises)) if (/^(lookup|resolve|reverse)/.test(name)) dns.promises[name] = refuse;
    // Sockets to addresses go by it too, and nothing is asked for those.
    dns.lookup = (host, ...rest) => /^[0-9.:]+$/.test(host) ? lookup(host, ...rest) : refuse();
    dns.Resolver = class { constructor() { refuse(); } };
    syncBuiltinESMExports();`;
  return `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;
}

describe('[H03] an endpoint whose name does not resolve', { timeout: 60_000 }, () => {
  it('is tried again after a failing, a silent and an ignorant name server, and gets its delivery in the end', async ({
    onTestFinished,
  }) => {
    const answers: StubAnswer[] = [{ code: SERVER_FAILURE }, 'silence', { code: NO_SUCH_NAME }, 'loopback'];
    let said: StubAnswer = answers[0]!;
    const names = await startNameServer(() => said);
    onTestFinished(names.close);
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    const stage = await openStage(onTestFinished);
    await listenFor(stage, stage.endpointId, 'unused');
    const policy = { retry: { schedule_seconds: [3_600, 3_600, 3_600], jitter: 0 } };
    const url = `http://rx.stub.test:${receiver.port}/`;
    const { endpointId } = await addSceneEndpoint(stage, url, 'named', policy);
    const scene = readersOf(stage, endpointId, 'named');
    await stage.boot({
      ...QUICK,
      NODE_OPTIONS: `--import=${onlyAsk(names.address)}`,
      WAYBILL_ATTEMPT_TIMEOUT_MS: '12000',
      WAYBILL_CONNECT_TIMEOUT_MS: '12000',
      WAYBILL_LEASE_MS: '15000',
    });
    const [published] = await scene.publish(1);
    for (const [index, answer] of answers.entries()) {
      said = answer;
      if (index > 0)
        await stage.pool.query('update waybill.delivery_queue set due_at = now() where endpoint_id = $1', [
          endpointId,
        ]);
      await scene.untilAttempt(index + 1);
    }
    const shown = await readDelivery(stage.pool, stage.tenantId, published!.deliveryId);
    expect(shown!.state).toBe('succeeded');
    expect(shown!.attempts.map(({ outcome, errorKind }) => `${outcome} ${errorKind}`)).toEqual([
      'failed dns_servfail',
      'failed dns_timeout',
      'failed dns_notfound',
      'succeeded null',
    ]);
    // The silent server's attempt ended by the resolver's own patience, inside the deadline.
    expect(shown!.attempts[1]!.durationMs).toBeLessThan(12_000);
    expect(receiver.requests.length).toBe(1);
    expect(names.asked.length).toBeGreaterThanOrEqual(answers.length);
  });
});
