import { readSigningSecrets } from '#outbox';
import { AppError, formatId, type Queryable } from '#runtime';
import { openSecret, type DataKeyCache } from '#secrets';

/** A live secret as text, and until when it signs by the database's clock. */
export interface OpenedSecret {
  readonly text: string;
  readonly expiresAtMs: number | null;
}

/** A live secret that does not open: not the endpoint's fault, and nothing that an attempt could tell its receiver. */
export class UnreadableSecretError extends Error {}

/**
 * Reads and opens an endpoint's live secrets. Throws UnreadableSecretError, which names the secret and the reason, when
 * one of them does not open: to sign with the others alone would be refused by whoever knows only that one.
 */
export async function openSecrets(
  db: Queryable,
  dataKeys: DataKeyCache,
  tenantId: string,
  endpointId: string,
): Promise<readonly OpenedSecret[]> {
  const secrets = await readSigningSecrets(db, tenantId, endpointId);
  const opened: OpenedSecret[] = [];
  for (const { id, clear, sealed, expiresAtMs } of secrets) {
    const secret = { tenantId, endpointId, secretId: id };
    try {
      const text = clear ?? (await openSecret(secret, sealed!, (version) => dataKeys.of(tenantId, version)));
      opened.push({ text, expiresAtMs });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      throw new UnreadableSecretError(`${formatId('secret', id)}: ${error.message}`, { cause: error });
    }
  }
  return opened;
}
