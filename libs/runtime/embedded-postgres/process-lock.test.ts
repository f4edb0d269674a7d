import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { takeProcessLock } from './process-lock.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'waybill-lock-'));
  path = join(folder, 'data.lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('takeProcessLock', () => {
  test('refuses while a live process holds the lock and names that process', () => {
    takeProcessLock(path, 'The data');
    expect(() => takeProcessLock(path, 'The data')).toThrow(`The data is in use by process ${process.pid}`);
  });

  test('can be taken again after it was given back, and leaves no file behind', () => {
    takeProcessLock(path, 'The data')();
    expect(readdirSync(folder)).toEqual([]);
    takeProcessLock(path, 'The data')();
  });

  test('takes over from a dead process', () => {
    const dead = spawnSync(process.execPath, ['-e', '0']).pid;
    writeFileSync(path, JSON.stringify({ pid: dead, started: 'once' }));
    const unlock = takeProcessLock(path, 'The data');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ pid: process.pid });
    unlock();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('takes over when the number now belongs to a process that started later', () => {
    writeFileSync(path, JSON.stringify({ pid: process.pid, started: 'before this one' }));
    takeProcessLock(path, 'The data');
    expect(readFileSync(path, 'utf8')).not.toContain('before this one');
  });

  test('takes over a lock file that is no lock', () => {
    writeFileSync(path, '\0\0');
    takeProcessLock(path, 'The data');
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ pid: process.pid });
  });

  test('giving back twice does not free the lock of the next holder', () => {
    const first = takeProcessLock(path, 'The data');
    first();
    takeProcessLock(path, 'The data');
    first();
    expect(() => takeProcessLock(path, 'The data')).toThrow('in use');
  });
});
