// `npm run bench -- NAME`: measures the product from dist beside its rivals. What each figure means: bench/README.md.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../scripts/launch/home.mjs';
import { onStopSignal } from '../scripts/launch/stop-signals.mjs';
import { cleanUp } from './support/cleanup.mjs';
import { startPostgres } from './support/postgres.mjs';
import { commitText, machineText, printTable, round } from './support/report.mjs';

const NAMES = ['deliver', 'send', 'ingest', 'latency', 'backlog', 'discover', 'fairness', 'xmin', 'match'];
const HELP = `npm run bench -- NAME [options]
  NAME         ${NAMES.join(', ')}, or all
  --json       print one object as the last line; with all, one line a bench
  --smoke      a few seconds at tiny sizes: shows that it runs, measures nothing
  --rounds N   rounds of what is measured in rounds (3)
  --save       write each bench's object to bench/results/NAME.json
`;

const options = readOptions();
let open = null;
let interrupted = false;
onStopSignal(() => {
  interrupted = true;
  void cleanUp().finally(() => process.exit(130));
});
if (options.smoke) console.log('A smoke run: it shows that the benches run. Its figures measure nothing.');
try {
  for (const name of options.names) await run(name);
} catch (error) {
  // What is being ended fails in all sorts of ways.
  if (!interrupted) process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
process.exit(interrupted ? 130 : process.exitCode);

async function run(name) {
  const { bench, needsDatabase = true } = await import(`./${name}.mjs`);
  const postgres = needsDatabase ? await openPostgres() : null;
  const result = await bench({ postgres, smoke: options.smoke, rounds: options.smoke ? 1 : options.rounds });
  const report = {
    bench: name,
    machine: machineText(postgres?.version),
    commit: commitText(),
    ratios: mapValues(result.ratios, round),
    absolute: mapValues(result.absolute, round),
  };
  printTable(
    `${name}: ratios and figures${options.smoke ? ' (smoke: these measure nothing)' : ''}`,
    Object.entries({ ...report.ratios, ...report.absolute }).map(([what, value]) => ({ what, value })),
  );
  if (postgres !== null && !options.smoke) await closePostgres();
  if (options.save) save(report);
  if (options.json) console.log(JSON.stringify(report));
}

// A smoke of all benches shares one server, since making one takes as long as the rest of a smoke.
async function openPostgres() {
  return (open ??= await startPostgres({ durable: !options.smoke }));
}

async function closePostgres() {
  await open.close();
  open = null;
}

function save(report) {
  const folder = join(ROOT, 'bench', 'results');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${report.bench}.json`), `${JSON.stringify(report, null, 2)}\n`);
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      save: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      help: { type: 'boolean', default: false },
    },
  });
  const names = positionals.includes('all') ? NAMES : positionals;
  const rounds = Number(values.rounds);
  const wrong = names.length === 0 || names.some((name) => !NAMES.includes(name)) || !(rounds >= 1);
  if (values.help || wrong) {
    process.stderr.write(HELP);
    process.exit(values.help ? 0 : 1);
  }
  return { ...values, names, rounds };
}
