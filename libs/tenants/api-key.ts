import type { Scope } from './scopes.js';

/** A bearer key of a tenant, as everybody but its holder knows it: of the key itself only a digest is stored. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** By the database's clock, when it was read. */
  readonly status: 'live' | 'expired' | 'revoked';
  readonly version: number;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly revokedAt: Date | null;
  /** To the minute. */
  readonly lastUsedAt: Date | null;
}

/** The columns of a key `k`, as `toApiKey` reads them; its digest is none of them. */
export const API_KEY_COLUMNS = `k.id, k.name, k.scopes, k.version, k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
  case when k.revoked_at is not null then 'revoked' when k.expires_at <= now() then 'expired' else 'live' end as status`;

export interface ApiKeyRow {
  readonly id: string;
  readonly name: string;
  readonly scopes: Scope[];
  readonly status: 'live' | 'expired' | 'revoked';
  readonly version: number;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly revoked_at: Date | null;
  readonly last_used_at: Date | null;
}

/** A key of its row. */
export function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    scopes: row.scopes,
    status: row.status,
    version: row.version,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    lastUsedAt: row.last_used_at,
  };
}
