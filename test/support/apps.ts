import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { bootProcess, type RunningApp, runProcess, type RunOutput, startProcess } from './app-process.js';
import type { Environment } from './child-environment.js';
import { TEST_ENCRYPTION_KEY } from './encryption.js';

export { BootError, type Exit, type RunningApp, stopEverything } from './app-process.js';

export interface BootOptions {
  readonly databaseUrl: string;
  /** Set over the defaults of the tests; undefined takes one away. */
  readonly env?: Environment;
}

/** Boots the built api on a port of the system's choice; rejects with its output if it ends before it is ready. */
export function bootApi(options: BootOptions): Promise<RunningApp> {
  return bootProcess(mainFileOf('api'), environmentOf(options));
}

/** Boots the built dispatcher; loopback receivers are allowed, over http. */
export function bootDispatcher(options: BootOptions): Promise<RunningApp> {
  return bootProcess(mainFileOf('dispatcher'), environmentOf(options));
}

/** Runs the operator's command line from dist to its end. */
export function runCli(args: readonly string[], env: Environment = {}): Promise<RunOutput> {
  return runProcess(mainFileOf('cli'), args, env);
}

/** Starts the command line from dist; the caller may kill it. */
export function startCli(
  args: readonly string[],
  env: Environment = {},
): { readonly process: ChildProcess; readonly ended: Promise<RunOutput> } {
  return startProcess(mainFileOf('cli'), args, env);
}

function environmentOf({ databaseUrl, env }: BootOptions): Environment {
  return {
    DATABASE_URL: databaseUrl,
    WAYBILL_ENCRYPTION_KEY: TEST_ENCRYPTION_KEY,
    WAYBILL_PORT: '0',
    WAYBILL_DISPATCHER_PORT: '0',
    WAYBILL_EGRESS_ALLOW: '127.0.0.0/8',
    WAYBILL_ALLOW_HTTP: 'true',
    ...env,
  };
}

function mainFileOf(app: 'api' | 'dispatcher' | 'cli'): string {
  return fileURLToPath(new URL(`../../dist/apps/${app}/src/main.js`, import.meta.url));
}
