// Makes a clone ready: installs what package-lock.json names and, with --build, compiles the sources into dist.
// Uses no packages, because there may be none yet; takes under 0.2 s when nothing is to be done.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withFolderLock } from './folder-lock.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const SOURCES = ['apps', 'libs', 'migrations', 'package.json', 'tsconfig.json', 'nest-cli.json', '.swcrc'];
const STAMP = join(ROOT, 'dist', '.built');
const OLDEST_NODE = [20, 19];

const wantsBuild = process.argv.includes('--build');

requireNode();
if (reasonToInstall() ?? (wantsBuild ? reasonToBuild() : null)) {
  mkdirSync(join(ROOT, '.waybill'), { recursive: true });
  await withFolderLock(join(ROOT, '.waybill', 'ensure.lock'), () => {
    // Asked again: whoever held the lock before us may have done it.
    const install = reasonToInstall();
    if (install) run(`Installing packages (${install})`, npmCommand(), ['ci']);
    const build = wantsBuild ? reasonToBuild() : null;
    if (build) buildDist(build);
  });
}

function requireNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1])) return;
  fail(`Waybill needs Node ${OLDEST_NODE.join('.')} or later; this is ${process.versions.node}`);
}

/** Says why node_modules is not what the lock file names, or returns null. Optional packages may be absent. */
function reasonToInstall() {
  const installedLock = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(installedLock)) return 'none are installed';
  const locked = readPackages(join(ROOT, 'package-lock.json'));
  const installed = readPackages(installedLock);
  for (const [path, wanted] of locked) {
    const found = installed.get(path);
    if (!found && (wanted.optional || wanted.devOptional)) continue;
    if (!found || !existsSync(join(ROOT, path))) return `${path.slice('node_modules/'.length)} is missing`;
    if (found.version !== wanted.version || found.integrity !== wanted.integrity) {
      return `${path.slice('node_modules/'.length)} is ${found.version}, not ${wanted.version}`;
    }
  }
  for (const path of installed.keys()) {
    if (!locked.has(path)) return `${path.slice('node_modules/'.length)} is no longer wanted`;
  }
  return null;
}

function readPackages(path) {
  const packages = Object.entries(JSON.parse(readFileSync(path, 'utf8')).packages);
  return new Map(packages.filter(([name]) => name !== ''));
}

/** Says why dist is out of date, or returns null. A folder's own time tells that a source in it was removed. */
function reasonToBuild() {
  if (!existsSync(STAMP)) return 'nothing is built yet';
  const builtMs = statSync(STAMP).mtimeMs;
  for (const source of SOURCES) {
    const newer = firstNewer(source, builtMs);
    if (newer) return `${newer} changed`;
  }
  return null;
}

function firstNewer(path, sinceMs) {
  const stat = statSync(join(ROOT, path), { throwIfNoEntry: false });
  if (!stat || path.endsWith('.test.ts')) return null;
  if (stat.mtimeMs > sinceMs) return path;
  if (!stat.isDirectory()) return null;
  for (const name of readdirSync(join(ROOT, path))) {
    const newer = firstNewer(join(path, name), sinceMs);
    if (newer) return newer;
  }
  return null;
}

function buildDist(reason) {
  const startedMs = Date.now();
  // Removed whole, so that a source that is gone leaves nothing that still runs.
  rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
  run(`Building (${reason})`, process.execPath, [
    join('node_modules', '@nestjs', 'cli', 'bin', 'nest.js'),
    'build',
    'api',
  ]);
  if (!existsSync(join(ROOT, 'dist'))) fail('The build left no dist');
  // npx makes the command executable once and never looks again: a rebuilt one would be refused.
  chmodSync(join(ROOT, 'dist/apps/cli/src/main.js'), 0o755);
  writeFileSync(STAMP, '');
  // The time of the start: what is edited during the build is built next time.
  utimesSync(STAMP, startedMs / 1000, startedMs / 1000);
}

function npmCommand() {
  return process.platform === 'win32' ? 'npm.cmd' : 'npm';
}

function run(title, command, args) {
  const startedMs = performance.now();
  process.stderr.write(`${title} … `);
  const result = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  if (result.status === 0) {
    process.stderr.write(`done in ${seconds} s\n`);
    return;
  }
  process.stderr.write(`failed after ${seconds} s\n${result.stdout ?? ''}${result.stderr ?? ''}`);
  fail(
    result.error
      ? `${command} does not start: ${result.error.message}`
      : `${command} ${args.join(' ')} failed`,
  );
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  // 'exit' gives a held lock back.
  process.exit(1);
}
