import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

// An owner writes its number right after making the folder; without one for this long it died in between.
const UNSIGNED_MS = 5_000;
// No install or build takes this long: the number must belong to another process by now.
const OLDEST_MS = 30 * 60_000;

/** Runs `work` while holding the lock folder; waits while a live process holds it, takes over from a dead one. */
export async function withFolderLock(folder, work) {
  let told = false;
  while (!made(folder)) {
    const owner = readOwner(folder);
    if (owner.dead) setAside(folder, owner.text);
    else {
      if (!told)
        process.stderr.write(`Waiting for process ${owner.text || 'that'} to finish its install or build\n`);
      told = true;
      await delay(100);
    }
  }
  const giveBack = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', giveBack);
  try {
    writeFileSync(join(folder, 'owner'), String(process.pid));
    return await work();
  } finally {
    giveBack();
    process.off('exit', giveBack);
  }
}

function made(folder) {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
}

function readOwner(folder) {
  const ageMs = Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  const text = readOwnerText(folder);
  if (text === '') return { text, dead: ageMs > UNSIGNED_MS };
  return { text, dead: ageMs > OLDEST_MS || !isAlive(Number(text)) };
}

function readOwnerText(folder) {
  try {
    return readFileSync(join(folder, 'owner'), 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// Two may find the same dead owner: the slower one must not carry off the lock of the faster one.
function setAside(folder, judgedDead) {
  const aside = `${folder}.dead-${process.pid}`;
  try {
    renameSync(folder, aside);
  } catch {
    return;
  }
  if (readOwnerText(aside) !== judgedDead) {
    try {
      renameSync(aside, folder);
      return;
    } catch {
      // A third one made the lock meanwhile; the carried-off owner is served by finding its work done twice.
    }
  }
  rmSync(aside, { recursive: true, force: true });
}
