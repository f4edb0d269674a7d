import dgram from 'node:dgram';
import { afterEach, describe, expect, it } from 'vitest';
import { startRawReceiver } from '../../test/support/raw-receiver.js';
import { createSender } from './create-sender.js';
import { createDnsLookup } from './dns-lookup.js';
import { parseEgressPolicy } from './parse-egress-policy.js';

const A = 1;
const AAAA = 28;
const NO_ERROR = 0;
const SERVER_FAILURE = 2;
const NO_SUCH_NAME = 3;
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** What the stub answers to one question: a response code, and the addresses as raw bytes; undefined is silence. */
type StubAnswer = { code: number; addresses?: number[][] } | undefined;

const startNameServer = async (answer: (type: number) => StubAnswer): Promise<string> => {
  const server = dgram.createSocket('udp4');
  server.on('message', (query, peer) => {
    const questionEnd = query.indexOf(0, 12) + 5;
    const type = query.readUInt16BE(questionEnd - 4);
    const found = answer(type);
    if (found === undefined) return;
    const addresses = found.addresses ?? [];
    const head = Buffer.from(query.subarray(0, questionEnd));
    head.writeUInt16BE(0x8180 | found.code, 2);
    head.writeUInt16BE(addresses.length, 6);
    head.writeUInt16BE(0, 10); // without the additional record of the question
    const records = addresses.map((bytes) =>
      Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length, ...bytes]),
    );
    server.send(Buffer.concat([head, ...records]), peer.port, peer.address);
  });
  await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve));
  cleanups.push(() => server.close());
  return `127.0.0.1:${server.address().port}`;
};
const policyOf = (allow: string[]) => parseEgressPolicy({ allow, deny: [], allowHttp: true });
const loopback6 = [...Array.from({ length: 15 }, () => 0), 1];

describe('createDnsLookup', () => {
  it('gives the addresses of both families', async () => {
    const server = await startNameServer((type) => ({
      code: NO_ERROR,
      addresses:
        type === A
          ? [
              [127, 0, 0, 1],
              [127, 0, 0, 2],
            ]
          : [loopback6],
    }));
    expect(await createDnsLookup(policyOf([]), [server])('rx.test.example')).toEqual([
      { address: '127.0.0.1', family: 4 },
      { address: '127.0.0.2', family: 4 },
      { address: '::1', family: 6 },
    ]);
  });

  it('gives what one family has when the other fails', async () => {
    const server = await startNameServer((type) =>
      type === AAAA ? { code: SERVER_FAILURE } : { code: NO_ERROR, addresses: [[127, 0, 0, 1]] },
    );
    expect(await createDnsLookup(policyOf([]), [server])('rx.test.example')).toEqual([
      { address: '127.0.0.1', family: 4 },
    ]);
  });

  it('[H03] tells a server failure, silence and a missing name apart, and sends once the name is back', async () => {
    const receiver = await startRawReceiver(({ socket }) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
    );
    cleanups.push(() => receiver.close());
    let answer: StubAnswer = { code: SERVER_FAILURE };
    const server = await startNameServer((type) =>
      type === AAAA && answer?.addresses ? { code: NO_ERROR } : answer,
    );
    const policy = policyOf([`127.0.0.1:${receiver.port}`]);
    const sender = createSender({ policy, lookup: createDnsLookup(policy, [server]) });
    cleanups.push(() => sender.close());
    const send = () =>
      sender.send({
        tenantId: 'tnt_1',
        url: `http://rx.test.example:${receiver.port}/`,
        headers: [],
        body: Buffer.from('{}'),
        connectTimeoutMs: 1_000,
        totalTimeoutMs: 10_000,
      });
    expect(await send()).toMatchObject({ kind: 'failure', error: 'dns_servfail', sent: false });
    answer = undefined;
    expect(await send()).toMatchObject({ kind: 'failure', error: 'dns_timeout', sent: false });
    answer = { code: NO_SUCH_NAME };
    expect(await send()).toMatchObject({ kind: 'failure', error: 'dns_notfound', sent: false });
    answer = { code: NO_ERROR, addresses: [[127, 0, 0, 1]] };
    expect(await send()).toMatchObject({ kind: 'response', status: 200 });
    expect(receiver.opened).toHaveLength(1);
  });

  it('looks up names the operator listed like any program does, and asks no name server for them', async () => {
    let asked = 0;
    const server = await startNameServer(() => {
      asked += 1;
      return { code: NO_SUCH_NAME };
    });
    const answers = await createDnsLookup(policyOf(['localhost:8080']), [server])('localhost');
    expect(answers.map(({ address }) => address)).toContain('127.0.0.1');
    expect(asked).toBe(0);
  });
});
