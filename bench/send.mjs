// What one request costs: the product's sender beside raw undici, each in a process of its own, no database.
import { startBenchChild } from './support/child.mjs';
import { processCpuUs } from './support/measure-cpu.mjs';
import { startReceiver } from './support/receiver.mjs';
import { median, printTable } from './support/report.mjs';

const FULL = { count: 60_000, warmUp: 10_000, origins: 64, payloadBytes: 300 };
const SMOKE = { count: 300, warmUp: 100, origins: 64, payloadBytes: 300 };
const IN_FLIGHT = 128;

export const needsDatabase = false;

/** `npm run bench -- send` */
export async function bench({ smoke, rounds }) {
  const { warmUp, count, origins, payloadBytes } = smoke ? SMOKE : FULL;
  const receiver = await startReceiver();
  const urls = await receiver.open(origins);
  const senders = await Promise.all(
    ['own', 'undici'].map(async (name) => ({ name, runs: [], child: await startSender(name) })),
  );
  const input = { urls, inFlight: IN_FLIGHT, payloadBytes };
  for (const { child } of senders) await child.ask('send', { ...input, count: warmUp });
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, runs, child } of senders) {
      const run = await measure({ child, receiver }, { ...input, count });
      runs.push(run);
      console.log(`round ${round}: ${name}: ${Math.round(run.perSecond)} requests/s`);
    }
  }
  for (const { child } of senders) await child.stop();
  await receiver.stop();
  return report(senders);
}

function startSender(name) {
  return startBenchChild('rivals/send-many.mjs', { BENCH_SENDER: name });
}

async function measure({ child, receiver }, input) {
  const nodeUs = processCpuUs(child.pid);
  const receiverUs = processCpuUs(receiver.pid);
  const startedMs = performance.now();
  await child.ask('send', input);
  return {
    perSecond: (input.count / (performance.now() - startedMs)) * 1_000,
    nodeUs: (processCpuUs(child.pid) - nodeUs) / input.count,
    receiverUs: (processCpuUs(receiver.pid) - receiverUs) / input.count,
  };
}

function report([own, undici]) {
  const of = ({ runs }, field) => median(runs.map((run) => run[field]));
  printTable(
    'send: medians; µs of processor time per request',
    [own, undici].map((sender) => ({
      sender: sender.name,
      'requests/s': of(sender, 'perSecond'),
      'Node µs': of(sender, 'nodeUs'),
      'receiver µs': of(sender, 'receiverUs'),
    })),
  );
  return {
    ratios: {
      // By processor time: sender and receiver share the processors with whatever else runs, and a rate tells of that.
      vs_undici: median(own.runs.map((run, round) => undici.runs[round].nodeUs / run.nodeUs)),
      node_us: of(own, 'nodeUs'),
      undici_node_us: of(undici, 'nodeUs'),
    },
    absolute: {
      own_per_second: of(own, 'perSecond'),
      undici_per_second: of(undici, 'perSecond'),
      own_receiver_us: of(own, 'receiverUs'),
      undici_receiver_us: of(undici, 'receiverUs'),
    },
  };
}
