import { LessThan } from 'typeorm';
import { AppError, type VersionExpectation } from '#runtime';
import type { Keyring } from '#secrets';
import type { TenantTransaction } from '#tenants';
import { acceptSecret } from './endpoint-input.js';
import { EndpointSecret } from './endpoint-secret.entity.js';
import { Endpoint } from './endpoint.entity.js';
import { lockEndpoint } from './lock-endpoint.js';
import { readOptionalNumber, type Bounds } from './read-field.js';
import { findEndpoint } from './read-endpoint.js';
import { storeSecret } from './store-secret.js';

/** How many secrets of an endpoint may be live at once: each adds a signature to every request. */
export const LIVE_SECRETS_MAX = 5;

const DAY_SECONDS = 86_400;
const OVERLAP_SECONDS_DEFAULT = DAY_SECONDS;
/** How long the older secrets may go on signing. */
export const SECRET_OVERLAP_SECONDS: Bounds = { min: 0, max: 7 * DAY_SECONDS, whole: true };

export interface NewSecret {
  /** The caller's own; one is made where it is not given. */
  readonly secret?: string;
  /** How long the older secrets go on signing. */
  readonly overlapSeconds?: unknown;
}

/** A secret as it may be shown, with the version that its endpoint has now. */
export interface ChangedSecret {
  readonly shown: EndpointSecret;
  readonly endpointVersion: number;
}

/** The secrets of an endpoint, those that no longer sign too, newest first; never what they are. */
export async function listSecrets(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  { limit, afterId }: { readonly limit: number; readonly afterId: string | null },
): Promise<{ readonly secrets: EndpointSecret[]; readonly endpointVersion: number }> {
  const { endpoint } = await findEndpoint(tx, tenantId, endpointId);
  const secrets = await tx.getRepository(EndpointSecret).find({
    where: { tenantId, endpointId, ...(afterId === null ? {} : { id: LessThan(afterId) }) },
    order: { id: 'DESC' },
    take: limit,
  });
  return { secrets, endpointVersion: endpoint.version };
}

/** One secret as it may be shown; throws `endpoint_not_found` or `secret_not_found`. */
export async function readSecret(
  tx: TenantTransaction,
  tenantId: string,
  { endpointId, secretId }: { readonly endpointId: string; readonly secretId: string },
): Promise<ChangedSecret> {
  const { endpoint } = await findEndpoint(tx, tenantId, endpointId);
  const shown = await tx.getRepository(EndpointSecret).findOneBy({ tenantId, endpointId, id: secretId });
  if (shown === null) throw new AppError('secret_not_found');
  return { shown, endpointVersion: endpoint.version };
}

const COUNT_LIVE = `
select count(*)::integer as live
from waybill.endpoint_secrets
where tenant_id = $1
  and endpoint_id = $2
  and revoked_at is null
  and (expires_at is null or expires_at > now())
`;

// What was to end sooner still does.
const EXPIRE_OLDER = `
update waybill.endpoint_secrets
set expires_at = now() + $3 * interval '1 second'
where tenant_id = $1
  and endpoint_id = $2
  and revoked_at is null
  and (expires_at is null or expires_at > now() + $3 * interval '1 second')
`;

/**
 * Gives an endpoint a new secret, which is in this answer and in no later one. It signs at once; the older ones sign
 * beside it until the overlap is over. Two rotations at once come one after the other.
 */
export async function rotateSecret(
  tx: TenantTransaction,
  tenantId: string,
  endpointId: string,
  input: NewSecret,
  options: { readonly keyring: Keyring; readonly expects: VersionExpectation },
): Promise<ChangedSecret & { readonly secret: string }> {
  const secret = acceptSecret(input.secret);
  const overlapSeconds = acceptOverlap(input.overlapSeconds);
  const before = await lockEndpoint(tx, tenantId, endpointId, options.expects);
  if (overlapSeconds > 0) await refuseTooMany(tx, tenantId, endpointId);
  await tx.query({ text: EXPIRE_OLDER, values: [tenantId, endpointId, overlapSeconds] });
  const id = await storeSecret(tx, tenantId, endpointId, secret, options.keyring);
  const endpointVersion = await countChange(tx, before);
  const shown = await tx.getRepository(EndpointSecret).findOneByOrFail({ tenantId, endpointId, id });
  return { secret, shown, endpointVersion };
}

/**
 * Takes a secret away at once: no request that is claimed from now on is signed with it. One that is revoked already
 * stays as it is. Throws `last_secret` for the one that stays when the others expire.
 */
export async function revokeSecret(
  tx: TenantTransaction,
  tenantId: string,
  { endpointId, secretId }: { readonly endpointId: string; readonly secretId: string },
  options: { readonly expects: VersionExpectation },
): Promise<{ readonly endpointVersion: number }> {
  const before = await lockEndpoint(tx, tenantId, endpointId, options.expects);
  const row = { tenantId, endpointId, id: secretId };
  const found = await tx.getRepository(EndpointSecret).findOneBy(row);
  if (found === null) throw new AppError('secret_not_found');
  if (found.revokedAt !== null) return { endpointVersion: before.version };
  if (found.expiresAt === null) {
    throw new AppError(
      'last_secret',
      'This secret stays when the others expire. Make a new one first; with overlap_seconds 0 this one ends at once.',
    );
  }
  await tx.getRepository(EndpointSecret).update(row, { revokedAt: () => 'now()' });
  return { endpointVersion: await countChange(tx, before) };
}

function acceptOverlap(given: unknown): number {
  return readOptionalNumber(given, 'overlap_seconds', SECRET_OVERLAP_SECONDS) ?? OVERLAP_SECONDS_DEFAULT;
}

async function refuseTooMany(tx: TenantTransaction, tenantId: string, endpointId: string): Promise<void> {
  const { rows } = await tx.query<{ live: number }>({ text: COUNT_LIVE, values: [tenantId, endpointId] });
  if (rows[0]!.live < LIVE_SECRETS_MAX) return;
  throw new AppError(
    'too_many_secrets',
    `An endpoint has at most ${LIVE_SECRETS_MAX} live secrets. Revoke one, or take overlap_seconds 0.`,
  );
}

/** Dispatchers know their copy of the secrets by `secretsVersion`. */
async function countChange(tx: TenantTransaction, before: Endpoint): Promise<number> {
  const { tenantId, id } = before;
  const version = before.version + 1;
  await tx
    .getRepository(Endpoint)
    .update(
      { tenantId, id },
      { version, secretsVersion: before.secretsVersion + 1, updatedAt: () => 'now()' },
    );
  return version;
}
