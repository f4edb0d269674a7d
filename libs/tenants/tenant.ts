/** A customer of this installation; everything else belongs to one. */
export interface Tenant {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly suspendedAt: Date | null;
  /** Set from the moment of its deletion until its last row is gone. */
  readonly deletedAt: Date | null;
}

/** The columns of a tenant `t`, as `toTenant` reads them. */
export const TENANT_COLUMNS =
  't.id, t.name, t.version, t.created_at, t.updated_at, t.suspended_at, t.deleted_at';

export interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly version: number;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly suspended_at: Date | null;
  readonly deleted_at: Date | null;
}

/** A tenant of its row. */
export function toTenant(row: TenantRow): Tenant {
  return {
    id: row.id,
    name: row.name,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    suspendedAt: row.suspended_at,
    deletedAt: row.deleted_at,
  };
}
