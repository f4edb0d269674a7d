import { Command } from 'commander';
import { migrate, readConfig, VERSION } from '#runtime';
import { examine } from './doctor.js';
import { addKey } from './key-commands.js';
import { asJson, print, type Environment, type Output } from './output.js';
import { addTenant } from './tenant-commands.js';
import { addSecrets } from './secrets-commands.js';

/** The operator's commands. Each resolves to nothing and reports by printing; `doctor` sets the exit code. */
export function createProgram(env: Environment, output: Output): Command {
  const program = new Command('waybill').description('Operate a Waybill installation.').version(VERSION);
  // A wrong use is thrown like any other failure then, instead of being told in words; so is the end of a help text.
  if (output.json) program.exitOverride().configureOutput({ writeErr: () => undefined });
  addMigrate(program, env);
  addTenant(program, env);
  addKey(program, env);
  addSecrets(program, env);
  addDoctor(program, env);
  return program;
}

function addMigrate(program: Command, env: Environment): void {
  asJson(program.command('migrate').description('bring the database to the revision of this code')).action(
    async (options: Output) => {
      const result = await migrate(readConfig(env).directDatabaseUrl);
      print(options, result, ({ applied }) => [
        applied.length === 0 ? 'Nothing to apply.' : `Applied: ${applied.join(', ')}`,
      ]);
    },
  );
}

function addDoctor(program: Command, env: Environment): void {
  asJson(program.command('doctor').description('examine the configuration and the database')).action(
    async (options: Output) => {
      const findings = await examine(env);
      print(options, { findings }, (report) =>
        report.findings.map(({ check, status, message }) => `${status.padEnd(4)} ${check}: ${message}`),
      );
      if (findings.some(({ status }) => status === 'fail')) process.exitCode = 1;
    },
  );
}
