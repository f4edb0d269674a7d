import { Command } from 'commander';
import { AppError, formatId, migrate, parseId, readConfig, VERSION } from '#runtime';
import {
  createApiKey,
  createTenant,
  listApiKeys,
  listTenants,
  revokeApiKey,
  SCOPES,
  type ApiKey,
} from '#tenants';
import { examine } from './doctor.js';
import { print, type Output } from './output.js';
import { rewrapSecrets } from './rewrap-secrets.js';
import { withSource } from './with-source.js';

type Environment = Readonly<Record<string, string | undefined>>;

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
  json(program.command('migrate').description('bring the database to the revision of this code')).action(
    async (options: Output) => {
      const result = await migrate(readConfig(env).directDatabaseUrl);
      print(options, result, ({ applied }) => [
        applied.length === 0 ? 'Nothing to apply.' : `Applied: ${applied.join(', ')}`,
      ]);
    },
  );
}

function addTenant(program: Command, env: Environment): void {
  const tenant = program.command('tenant').description('tenants');
  json(
    tenant.command('create').description('make a tenant').requiredOption('--name <name>', 'its name'),
  ).action(async (options: Output & { name: string }) => {
    const { id } = await withSource(readConfig(env), (source) =>
      createTenant(source, { name: options.name }),
    );
    print(options, { id: formatId('tenant', id), name: options.name }, (made) => [made.id]);
  });
  json(tenant.command('list').description('show the tenants')).action(async (options: Output) => {
    const tenants = await withSource(readConfig(env), listTenants);
    const data = tenants.map(({ id, name, createdAt }) => ({
      id: formatId('tenant', id),
      name,
      created_at: createdAt.toISOString(),
    }));
    print(options, { data }, () => data.map((one) => `${one.id}  ${one.created_at}  ${one.name}`));
  });
}

function addKey(program: Command, env: Environment): void {
  const key = program.command('key').description('API keys');
  json(
    key
      .command('create')
      .description('make an API key, shown once')
      .requiredOption('--tenant <id>', 'whose key, tnt_…')
      .requiredOption('--name <name>', 'what it is for')
      .requiredOption('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`),
  ).action(async (options: Output & { tenant: string; name: string; scopes: string }) => {
    const tenantId = parseId('tenant', options.tenant);
    const scopes = options.scopes.split(',').map((scope) => scope.trim());
    const made = await withSource(readConfig(env), (source) =>
      createApiKey(source, tenantId, { name: options.name, scopes }),
    );
    print(options, { id: formatId('api_key', made.id), key: made.key }, (result) => [
      `Id:  ${result.id}`,
      `Key: ${result.key}`,
      'The key is shown this once: only its digest is stored.',
    ]);
  });
  json(
    key
      .command('list')
      .description("show a tenant's keys")
      .requiredOption('--tenant <id>', 'whose keys, tnt_…'),
  ).action(async (options: Output & { tenant: string }) => {
    const tenantId = parseId('tenant', options.tenant);
    const keys = await withSource(readConfig(env), (source) => listApiKeys(source, tenantId));
    const data = keys.map(keyView);
    print(options, { data }, () =>
      data.map(
        (one) => `${one.id}  ${one.revoked_at ? 'revoked' : 'live   '}  ${one.scopes.join(',')}  ${one.name}`,
      ),
    );
  });
  json(
    key
      .command('revoke')
      .description('revoke an API key; it is refused from the next request on')
      .argument('<key>', 'which key, key_…')
      .requiredOption('--tenant <id>', 'whose key, tnt_…'),
  ).action(async (id: string, options: Output & { tenant: string }) => {
    const [tenantId, keyId] = [parseId('tenant', options.tenant), parseId('api_key', id)];
    const revoked = await withSource(readConfig(env), (source) => revokeApiKey(source, tenantId, keyId));
    if (!revoked) throw new AppError('api_key_not_found');
    print(options, { id, revoked: true }, () => [`${id} is revoked.`]);
  });
}

function keyView({ id, name, scopes, createdAt, expiresAt, revokedAt }: ApiKey) {
  return {
    id: formatId('api_key', id),
    name,
    scopes,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    revoked_at: revokedAt?.toISOString() ?? null,
  };
}

function addSecrets(program: Command, env: Environment): void {
  const secrets = program.command('secrets').description('endpoint secrets at rest');
  json(
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

function addDoctor(program: Command, env: Environment): void {
  json(program.command('doctor').description('examine the configuration and the database')).action(
    async (options: Output) => {
      const findings = await examine(env);
      print(options, { findings }, (report) =>
        report.findings.map(({ check, status, message }) => `${status.padEnd(4)} ${check}: ${message}`),
      );
      if (findings.some(({ status }) => status === 'fail')) process.exitCode = 1;
    },
  );
}

function json(command: Command): Command {
  return command.option('--json', 'print JSON', false);
}
