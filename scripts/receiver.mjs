// `npm run receiver`: a real receiver on this machine, to watch deliveries arrive, be verified, fail and be retried.
import { parseArgs } from 'node:util';
import { arrivalLine, bodyStart } from './launch/arrival-line.mjs';
import { readAdminKey } from './launch/admin-key.mjs';
import { KEY_FILE, shortPath } from './launch/home.mjs';
import { paintFor } from './launch/paint.mjs';
import { startReceiver } from './launch/receiver.mjs';
import { onStopSignal } from './launch/stop-signals.mjs';
import { waitForApi } from './launch/waybill-api.mjs';

const API_WAIT_MS = 15_000;
const HELP = `npm run receiver -- [options]
  --api URL    where the Waybill API is (http://127.0.0.1:8420, or WAYBILL_PORT's)
  --key KEY    an API key (WAYBILL_KEY, or .waybill/admin-key of the embedded default)
  --port N     listen on this port of 127.0.0.1 (0: the system picks)
  --fail N     answer 500 to the first N arrivals, to watch retries
`;

const paint = paintFor(process.stdout);

try {
  await main(readOptions());
} catch (error) {
  process.stderr.write(`${paintFor(process.stderr).red(error.message)}\n`);
  process.exitCode = 1;
}

async function main(options) {
  if (options.help) {
    process.stdout.write(HELP);
    return;
  }
  const key = options.key ?? process.env.WAYBILL_KEY ?? keptKey();
  await waitForApi(options.api, API_WAIT_MS, () =>
    console.log(paint.dim(`Waiting for the API at ${options.api} …`)),
  );
  const receiver = await startReceiver({
    apiUrl: options.api,
    key,
    port: options.port,
    failFirst: options.fail,
    onArrival: (arrival) =>
      console.log(`${arrivalLine(arrival, paint)}\n  ${paint.dim(bodyStart(arrival.body))}`),
  });
  console.log(
    `${paint.bold('Receiver ready')}  ${receiver.url}  is endpoint ${receiver.endpointId} of ${options.api}`,
  );
  console.log(paint.dim('It takes every event of this tenant and is removed again on Ctrl-C.\n'));
  let stopping = false;
  onStopSignal(() => {
    if (stopping) process.exit(130);
    stopping = true;
    void receiver.stop().then(
      () => process.exit(0),
      (error) => {
        process.stderr.write(`The endpoint ${receiver.endpointId} could not be removed: ${error.message}\n`);
        process.exit(1);
      },
    );
  });
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      api: { type: 'string', default: `http://127.0.0.1:${process.env.WAYBILL_PORT ?? 8420}` },
      key: { type: 'string' },
      port: { type: 'string', default: '0' },
      fail: { type: 'string', default: '0' },
      help: { type: 'boolean', default: false },
    },
  });
  return {
    ...values,
    port: wholeNumber('--port', values.port, 65_535),
    fail: wholeNumber('--fail', values.fail, 1e9),
  };
}

function wholeNumber(name, text, max) {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > max)
    throw new Error(`${name} must be a whole number up to ${max}, not "${text}"`);
  return value;
}

function keptKey() {
  const key = readAdminKey(KEY_FILE);
  if (key) return key;
  throw new Error(
    `No API key: pass --key KEY, or run \`npm start\` without DATABASE_URL once, which keeps one in ${shortPath(KEY_FILE)}`,
  );
}
