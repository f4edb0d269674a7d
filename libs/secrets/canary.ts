import { AppError, type Queryable } from '#runtime';
import type { Place } from './envelope.js';
import type { Keyring } from './keyring.js';

const CANARY = Buffer.from('this database knows the key');

// One snapshot of both: a canary is always committed before the first data key.
const READ_CANARIES = `
select c.kek_version, c.sealed, u.used
from (select exists (select from waybill.tenant_data_keys) as used) u
left join waybill.encryption_canary c on true
order by c.kek_version
`;

interface CanaryRow {
  kek_version: number | null;
  sealed: Buffer | null;
  used: boolean;
}

const KEEP_CANARY = `
insert into waybill.encryption_canary (kek_version, sealed)
values ($1, $2)
on conflict do nothing
`;

const DROP_CANARIES = `
delete from waybill.encryption_canary c
where c.kek_version <> $1
  and not exists (select from waybill.tenant_data_keys k where k.kek_version = c.kek_version)
`;

/**
 * Opens the canary of every key-encryption key that this database was ever started with and that is still in use;
 * throws `encryption_key_mismatch` unless all of them open. Returns their versions, none before the first start.
 */
export async function verifyCanaries(db: Queryable, keyring: Keyring): Promise<readonly number[]> {
  const { rows } = await db.query<CanaryRow>({ text: READ_CANARIES });
  const canaries = rows.filter((row) => row.kek_version !== null);
  for (const { kek_version: version, sealed } of canaries) verify(keyring, version!, sealed!);
  if (canaries.length === 0 && rows[0]!.used) {
    throw mismatch(
      keyring,
      'The database holds data keys, but no canary to check WAYBILL_ENCRYPTION_KEY against: restore it.',
    );
  }
  return canaries.map((row) => row.kek_version!);
}

/**
 * Refuses a wrong key before anything is read or written with it. The very first start makes the canary, and a start
 * with a new key first makes one for it; of two first starts at once with different keys one is refused.
 */
export async function assertEncryptionKey(db: Queryable, keyring: Keyring): Promise<void> {
  const known = await verifyCanaries(db, keyring);
  if (known.includes(keyring.newest)) return;
  const { newest } = keyring;
  await db.query({ text: KEEP_CANARY, values: [newest, keyring.seal(placeOf(newest), CANARY)] });
  await verifyCanaries(db, keyring);
}

/** Takes away the canaries of versions that wrap nothing any more, so that a start no longer needs those keys. */
export async function dropOldCanaries(db: Queryable, keyring: Keyring): Promise<void> {
  await db.query({ text: DROP_CANARIES, values: [keyring.newest] });
}

function verify(keyring: Keyring, version: number, sealed: Buffer): void {
  if (!keyring.versions.includes(version)) {
    throw mismatch(
      keyring,
      `The secrets in the database need version ${version} of WAYBILL_ENCRYPTION_KEY, which is not among those given.`,
    );
  }
  let opened: Buffer;
  try {
    opened = keyring.open(placeOf(version), sealed);
  } catch (cause) {
    throw mismatch(
      keyring,
      `Version ${version} of WAYBILL_ENCRYPTION_KEY is not the key that this database was started with.`,
      cause,
    );
  }
  if (!opened.equals(CANARY)) throw mismatch(keyring, `The canary of version ${version} is not ours.`);
}

function mismatch({ versions }: Keyring, reason: string, cause?: unknown): AppError {
  return new AppError('encryption_key_mismatch', `${reason} Given: version ${versions.join(', ')}.`, {
    cause,
  });
}

function placeOf(version: number): Place {
  return { table: 'encryption_canary', column: 'sealed', tenantId: '', rowId: String(version) };
}
