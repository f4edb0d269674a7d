import { formatId } from '#runtime';
import type { EndpointSecret } from '#endpoints';

/** A secret as the API shows it: when it was made and when it ends; never what it is. */
export function secretView({ id, createdAt, expiresAt, revokedAt }: EndpointSecret) {
  return {
    id: formatId('secret', id),
    created_at: createdAt.toISOString(),
    expires_at: expiresAt?.toISOString() ?? null,
    revoked_at: revokedAt?.toISOString() ?? null,
  };
}
