import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';

import { BootError, bootProcess, runProcess, stopEverything } from './app-process.js';
import { createClient } from './api-client.js';

const folder = mkdtempSync(join(tmpdir(), 'waybill-app-process-'));
afterEach(stopEverything);
afterAll(() => rmSync(folder, { recursive: true }));

function programOf(name: string, source: string): string {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, source);
  return file;
}

const SERVING = programOf(
  'serving',
  `import { createServer } from 'node:http';
   console.log(JSON.stringify({ event: 'started', set: process.env.WAYBILL_SET, stray: process.env.WAYBILL_STRAY ?? null,
     database: process.env.DATABASE_URL ?? null }));
   console.error('not json {');
   process.on('SIGTERM', () => { console.log(JSON.stringify({ event: 'stopping' })); process.exit(0); });
   const server = createServer((_, response) => response.end('hello'));
   server.listen(0, '127.0.0.1', () => process.send({ type: 'ready', url: 'http://127.0.0.1:' + server.address().port }));`,
);

describe('a booted process', () => {
  it('is ready when it says so, logs lines, and stops when asked', async () => {
    const app = await bootProcess(SERVING, { WAYBILL_SET: 'yes' });
    expect((await createClient(app.url, null).get('/')).text).toBe('hello');
    expect(await app.stop()).toEqual({ code: 0, signal: null });
    expect(app.logs()).toMatchObject([{ event: 'started', set: 'yes' }, { event: 'stopping' }]);
    expect(app.logText()).toContain('not json {');
  });

  it('inherits none of our settings and no database of the caller', async () => {
    vi.stubEnv('WAYBILL_STRAY', 'leaked').stubEnv('DATABASE_URL', 'postgresql://leaked');
    const app = await bootProcess(SERVING, {}).finally(() => vi.unstubAllEnvs());
    await app.stop();
    expect(app.logs()[0]).toMatchObject({ stray: null, database: null });
  });

  it('is reported with its output when it ends before it is ready', async () => {
    const refusing = programOf('refusing', `console.error('refused: no lease'); process.exit(78);`);
    const failure = await bootProcess(refusing, {}).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BootError);
    expect(failure).toMatchObject({ code: 78, output: 'refused: no lease\n' });
  });

  it('stands still while paused and goes on when resumed', async () => {
    const app = await bootProcess(SERVING, {});
    app.pause();
    await expect(createClient(app.url, null, { timeoutMs: 500 }).get('/')).rejects.toThrow(
      'no answer within 500 ms',
    );
    app.resume();
    expect((await createClient(app.url, null).get('/')).text).toBe('hello');
  });

  it('is killed, even while paused, when everything is stopped', async () => {
    const app = await bootProcess(SERVING, {});
    app.pause();
    await stopEverything();
    expect(await app.exited).toEqual({ code: null, signal: 'SIGKILL' });
    expect(() => process.kill(app.pid, 0)).toThrow('ESRCH');
  });
});

describe('a program that runs to its end', () => {
  it('gives its code and both outputs', async () => {
    const program = programOf(
      'ending',
      `console.log(process.argv[2]); console.error('warned'); process.exitCode = 3;`,
    );
    expect(await runProcess(program, ['argument'], {})).toEqual({
      code: 3,
      stdout: 'argument\n',
      stderr: 'warned\n',
    });
  });
});
