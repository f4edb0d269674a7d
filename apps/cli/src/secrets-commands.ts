import type { Command } from 'commander';
import { readConfig } from '#runtime';
import { asJson, print, type Environment, type Output } from './output.js';
import { rewrapSecrets } from './rewrap-secrets.js';

/** `waybill secrets …`: endpoint secrets at rest. */
export function addSecrets(program: Command, env: Environment): void {
  const secrets = program.command('secrets').description('endpoint secrets at rest');
  asJson(
    secrets
      .command('rewrap')
      .description('wrap every data key with the newest version of WAYBILL_ENCRYPTION_KEY'),
  ).action(async (options: Output) => {
    const report = await rewrapSecrets(readConfig(env), (line) => options.json || console.error(line));
    print(options, report, ({ version, rewrapped, left, sealed }) => [
      `${rewrapped} data key(s) re-wrapped with version ${version}, ${left} left.`,
      ...(sealed === 0 ? [] : [`${sealed} secret(s) that stood in clear are sealed.`]),
      left === 0
        ? 'Older versions are no longer needed: take them out of WAYBILL_ENCRYPTION_KEY.'
        : 'Another process holds the rest at this moment: run this again.',
    ]);
  });
}
