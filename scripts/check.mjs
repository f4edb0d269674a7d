// `npm run check`: the whole gate beside the tests. Every step runs, so that one run shows all that is wrong.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './launch/home.mjs';
import { paintFor } from './launch/paint.mjs';

const node = (...args) => [process.execPath, ...args];
const tool = (name, ...args) => [join(ROOT, 'node_modules', '.bin', name), ...args];
const FOLDERS = ['apps', 'libs', 'migrations'];

const STEPS = [
  ['format', tool('prettier', '--check', '--log-level', 'warn', '.')],
  ['lint', tool('oxlint', '--type-aware', '.')],
  ['types', tool('tsc', '--noEmit', '-p', '.')],
  ['arrows', tool('depcruise', '--config', '.dependency-cruiser.mjs', ...FOLDERS)],
  ['schema', node('scripts/write-schema.mjs', '--check')],
  ['openapi', node('scripts/write-openapi.mjs', '--check')],
  ['deployment files', node('scripts/check-deploy.mjs')],
];

const paint = paintFor(process.stdout);

const ready = spawnSync(process.execPath, ['scripts/ensure.mjs', '--build'], { cwd: ROOT, stdio: 'inherit' });
if (ready.status !== 0) process.exit(1);

const failed = STEPS.filter(([name, command]) => !passes(name, command)).map(([name]) => name);
if (failed.length > 0) {
  console.log(`\n${paint.red(`${failed.length} of ${STEPS.length} checks failed: ${failed.join(', ')}`)}`);
  process.exit(1);
}
console.log(`\n${paint.green(`All ${STEPS.length} checks passed`)}`);

function passes(name, [command, ...args]) {
  const startedMs = performance.now();
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const seconds = `${((performance.now() - startedMs) / 1000).toFixed(1)} s`.padStart(7);
  const ok = result.status === 0;
  console.log(`${ok ? paint.green('✓') : paint.red('✗')} ${name.padEnd(18)} ${paint.dim(seconds)}`);
  if (!ok) console.log(indent(`${result.error?.message ?? ''}${result.stdout ?? ''}${result.stderr ?? ''}`));
  return ok;
}

function indent(text) {
  return text.trimEnd().replaceAll(/^/gm, '    ');
}
