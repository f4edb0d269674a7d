import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

import { childEnvironment, type Environment } from './child-environment.js';

const BOOT_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 30_000;

/** How a process ended: its exit code, or the signal that ended it. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A built app that runs as a process of its own and has said that it is ready. */
export interface RunningApp {
  readonly url: string;
  readonly pid: number;
  readonly process: ChildProcess;
  /** Resolves when it has ended and all of its output is here. */
  readonly exited: Promise<Exit>;
  /** Every line of its output so far that is a JSON object. */
  logs(): Record<string, unknown>[];
  logText(): string;
  /** Sends a signal (SIGKILL if none is named) and resolves when the process has ended. */
  kill(signal?: NodeJS.Signals): Promise<Exit>;
  /** SIGTERM, and wait; a process that does not end within 30 s is killed and the promise rejects. */
  stop(): Promise<Exit>;
  /** SIGSTOP: it stands still, sockets open, until `resume`. */
  pause(): void;
  resume(): void;
}

const running = new Set<ChildProcess>();

/** Kills all that this test file has booted and still runs, paused ones too. For `afterAll`. */
export async function stopEverything(): Promise<void> {
  const ended = [...running].map((child) => new Promise((resolve) => child.once('close', resolve)));
  for (const child of running) child.kill('SIGKILL');
  await Promise.all(ended);
}

// A worker that ends without its afterAll leaves no process behind.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A program that runs to its end by itself: its code (null if a signal ended it) and all it wrote. */
export interface RunOutput {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a Node program to its end. */
export function runProcess(mainFile: string, args: readonly string[], env: Environment): Promise<RunOutput> {
  return startProcess(mainFile, args, env).ended;
}

/** Starts a Node program that ends by itself, or is killed by the caller. */
export function startProcess(
  mainFile: string,
  args: readonly string[],
  env: Environment,
): { readonly process: ChildProcess; readonly ended: Promise<RunOutput> } {
  const child = spawn(process.execPath, [existing(mainFile), ...args], {
    env: childEnvironment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const stdout = collect(child.stdout);
  const stderr = collect(child.stderr);
  const ended = track(child).then(({ code }) => ({ code, stdout: stdout(), stderr: stderr() }));
  return { process: child, ended };
}

/** Boots a Node program that reports `{ type: 'ready', url }` over its ipc channel, and waits for that. */
export async function bootProcess(mainFile: string, env: Environment): Promise<RunningApp> {
  const child = spawn(process.execPath, [existing(mainFile)], {
    env: childEnvironment(env),
    // The app ends when this channel closes, so it does not outlive a killed test run.
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const output = collect(child.stdout, child.stderr);
  const exited = track(child);
  const url = await untilReady(child, exited, output);
  const kill = (signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> => {
    child.kill(signal);
    return exited;
  };
  return {
    url,
    pid: child.pid ?? 0,
    process: child,
    exited,
    logs: () => jsonLines(output()),
    logText: output,
    kill,
    stop: () => stop(child, exited, output),
    pause: () => void child.kill('SIGSTOP'),
    resume: () => void child.kill('SIGCONT'),
  };
}

function existing(mainFile: string): string {
  if (!existsSync(mainFile)) throw new Error(`${mainFile} is not there: run \`npm run build\` first`);
  return mainFile;
}

/** Registers a child until it has ended and its output is whole. */
function track(child: ChildProcess): Promise<Exit> {
  running.add(child);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal });
    });
  });
}

function collect(...streams: (NodeJS.ReadableStream | null)[]): () => string {
  const chunks: Buffer[] = [];
  for (const stream of streams) stream?.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

function untilReady(child: ChildProcess, exited: Promise<Exit>, output: () => string): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the app was not ready within ${BOOT_TIMEOUT_MS} ms; its output:\n${output()}`));
    }, BOOT_TIMEOUT_MS);
    child.on('message', (message: { type?: unknown; url?: unknown }) => {
      if (message.type !== 'ready' || typeof message.url !== 'string') return;
      clearTimeout(timer);
      resolve(message.url);
    });
    void exited
      .then(({ code, signal }) => new BootError(code, signal, output()))
      .catch((error: Error) => error)
      .then((error) => {
        clearTimeout(timer);
        reject(error);
      });
  });
}

/** An app that ended before it was ready: what it left, for tests of refused starts. */
export class BootError extends Error {
  constructor(
    readonly code: number | null,
    readonly signal: NodeJS.Signals | null,
    readonly output: string,
  ) {
    super(`the app ended before it was ready (code ${code}, signal ${signal}); its output:\n${output}`);
  }
}

async function stop(child: ChildProcess, exited: Promise<Exit>, output: () => string): Promise<Exit> {
  let tooLate = false;
  const timer = setTimeout(() => {
    tooLate = true;
    child.kill('SIGKILL');
  }, STOP_TIMEOUT_MS);
  child.kill('SIGTERM');
  const exit = await exited;
  clearTimeout(timer);
  if (tooLate)
    throw new Error(`the app did not end within ${STOP_TIMEOUT_MS} ms of SIGTERM; its output:\n${output()}`);
  return exit;
}

function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .flatMap((line) => {
      try {
        const entry: Record<string, unknown> = JSON.parse(line);
        return [entry];
      } catch {
        // The last line may still be half written.
        return [];
      }
    });
}
