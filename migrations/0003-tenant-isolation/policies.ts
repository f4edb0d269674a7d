/** The tables whose rows belong to a tenant, and the column that says to which. */
const TENANT_COLUMNS = {
  announcements: 'tenant_id',
  api_keys: 'tenant_id',
  attempts: 'tenant_id',
  circuits: 'tenant_id',
  dead_letters: 'tenant_id',
  deliveries: 'tenant_id',
  delivery_queue: 'tenant_id',
  endpoint_secrets: 'tenant_id',
  endpoints: 'tenant_id',
  events: 'tenant_id',
  idempotency_keys: 'tenant_id',
  rate_tokens: 'tenant_id',
  replays: 'tenant_id',
  subscriptions: 'tenant_id',
  tenants: 'id',
};

/** The tenant of the transaction. Unset is null, and after a transaction that set it '': both are nobody's. */
const CURRENT_TENANT = `nullif(current_setting('waybill.tenant', true), '')::uuid`;

/**
 * Two policies a table. waybill_app sees and writes the rows of one tenant, the one its transaction names; without a name
 * it sees none. The roles that work for all tenants at once see every row of the tables that they are granted, and no
 * others: what keeps those apart is grants.ts. FORCE binds the owner too, so it is named.
 */
export function policiesOf(table: string, column: string): string {
  return `
alter table waybill.${table} enable row level security, force row level security;
create policy one_tenant on waybill.${table} to waybill_app
  using (${column} = ${CURRENT_TENANT})
  with check (${column} = ${CURRENT_TENANT});
create policy every_tenant on waybill.${table} to waybill_owner, waybill_intake, waybill_dispatcher, waybill_operator
  using (true)
  with check (true);
`;
}

const dropPoliciesOf = (table: string): string => `
drop policy one_tenant on waybill.${table};
drop policy every_tenant on waybill.${table};
alter table waybill.${table} no force row level security, disable row level security;
`;

export const TENANT_POLICIES = Object.entries(TENANT_COLUMNS)
  .map(([table, column]) => policiesOf(table, column))
  .join('');

export const DROP_POLICIES = Object.keys(TENANT_COLUMNS).map(dropPoliciesOf).join('');
