import type { Command } from 'commander';
import { AppError, formatId, parseId, readConfig, withTransaction } from '#runtime';
import {
  createApiKey,
  findApiKey,
  findTenant,
  listApiKeys,
  OVERLAP_SECONDS_DEFAULT,
  OVERLAP_SECONDS_MAX,
  revokeApiKey,
  rotateApiKey,
  SCOPES,
  type ApiKey,
} from '#tenants';
import { everyPage } from './every-page.js';
import { asJson, print, type Environment, type Output } from './output.js';
import { withDatabase } from './with-database.js';

type OfTenant = Output & { readonly tenant: string };

const SHOWN_ONCE = 'The key is shown this once: only its digest is stored.';

/** `waybill key …` */
export function addKey(program: Command, env: Environment): void {
  const key = program.command('key').description('API keys');
  addCreate(key, env);
  addList(key, env);
  addRotate(key, env);
  addRevoke(key, env);
}

function addCreate(key: Command, env: Environment): void {
  asJson(
    key
      .command('create')
      .description('make an API key, shown once')
      .requiredOption('--tenant <id>', 'whose key, tnt_…')
      .requiredOption('--name <name>', 'what it is for')
      .requiredOption('--scopes <scopes>', `comma-separated: ${SCOPES.join(', ')}`)
      .option('--expires <time>', 'when it ends, such as 2027-01-31T12:00:00Z; never if not given'),
  ).action(async (options: OfTenant & { name: string; scopes: string; expires?: string }) => {
    const config = readConfig(env);
    const tenantId = parseId('tenant', options.tenant);
    const input = {
      name: options.name,
      scopes: options.scopes.split(',').map((scope) => scope.trim()),
      expiresAt: options.expires === undefined ? null : readExpiry(options.expires),
    };
    const made = await withDatabase(config, (db) => createApiKey(db, tenantId, input, config.keyEnv));
    const shown = { id: formatId('api_key', made.id), key: made.key, expires_at: timeOf(made.expiresAt) };
    print(options, shown, (result) => [`Id:  ${result.id}`, `Key: ${result.key}`, SHOWN_ONCE]);
  });
}

function addList(key: Command, env: Environment): void {
  asJson(
    key
      .command('list')
      .description("show a tenant's keys")
      .requiredOption('--tenant <id>', 'whose keys, tnt_…'),
  ).action(async (options: OfTenant) => {
    const tenantId = parseId('tenant', options.tenant);
    const keys = await withDatabase(readConfig(env), async (db) => {
      await findTenant(db, tenantId);
      return everyPage((page) => listApiKeys(db, tenantId, page));
    });
    const data = keys.map(keyView);
    print(options, { data }, () =>
      data.map((one) => `${one.id}  ${one.status.padEnd(7)}  ${one.scopes.join(',')}  ${one.name}`),
    );
  });
}

function addRotate(key: Command, env: Environment): void {
  asJson(
    key
      .command('rotate')
      .description('make a key like this one, which ends when the overlap is over')
      .argument('<key>', 'which key, key_…')
      .requiredOption('--tenant <id>', 'whose key, tnt_…')
      .option('--overlap <seconds>', 'how long both are good', String(OVERLAP_SECONDS_DEFAULT)),
  ).action(async (id: string, options: OfTenant & { overlap: string }) => {
    const config = readConfig(env);
    const tenantId = parseId('tenant', options.tenant);
    const overlapSeconds = readOverlap(options.overlap);
    const rotation = { keyId: parseId('api_key', id), overlapSeconds, held: null };
    const { made, replaced } = await withDatabase(config, async (db) => {
      await findTenant(db, tenantId);
      return withTransaction(db, (tx) => rotateApiKey(tx, tenantId, rotation, config.keyEnv));
    });
    const shown = { id: formatId('api_key', made.id), key: made.key, replaces: keyView(replaced) };
    print(options, shown, (result) => [
      `Id:  ${result.id}`,
      `Key: ${result.key}`,
      SHOWN_ONCE,
      `${id} ends at ${result.replaces.expires_at}.`,
    ]);
  });
}

function addRevoke(key: Command, env: Environment): void {
  asJson(
    key
      .command('revoke')
      .description('revoke an API key; it is refused from the next request on')
      .argument('<key>', 'which key, key_…')
      .requiredOption('--tenant <id>', 'whose key, tnt_…'),
  ).action(async (id: string, options: OfTenant) => {
    const [tenantId, keyId] = [parseId('tenant', options.tenant), parseId('api_key', id)];
    await withDatabase(readConfig(env), async (db) => {
      const { status } = await findApiKey(db, tenantId, keyId);
      if (status === 'revoked') throw new AppError('api_key_ended', 'The key is revoked already.');
      return revokeApiKey(db, tenantId, keyId);
    });
    print(options, { id, revoked: true }, () => [`${id} is revoked.`]);
  });
}

function readExpiry(text: string): Date {
  const time = new Date(text);
  if (
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) &&
    !Number.isNaN(time.getTime())
  )
    return time;
  throw new AppError(
    'validation_failed',
    `--expires must be a time such as 2027-01-31T12:00:00Z, not "${text}".`,
  );
}

function readOverlap(text: string): number {
  const seconds = Number(text);
  if (/^\d{1,7}$/.test(text) && seconds <= OVERLAP_SECONDS_MAX) return seconds;
  throw new AppError(
    'validation_failed',
    `--overlap must be a whole number of seconds from 0 to ${OVERLAP_SECONDS_MAX}, not "${text}".`,
  );
}

function timeOf(time: Date | null): string | null {
  return time?.toISOString() ?? null;
}

function keyView(key: ApiKey) {
  return {
    id: formatId('api_key', key.id),
    name: key.name,
    scopes: key.scopes,
    status: key.status,
    created_at: key.createdAt.toISOString(),
    expires_at: timeOf(key.expiresAt),
    revoked_at: timeOf(key.revokedAt),
    last_used_at: timeOf(key.lastUsedAt),
  };
}
