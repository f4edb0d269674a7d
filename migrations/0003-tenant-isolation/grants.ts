const ROLES = 'waybill_app, waybill_intake, waybill_dispatcher, waybill_operator';

/** Functions are open to everybody unless that is taken back. */
const EVERYBODY = `
revoke execute on all functions in schema waybill from public;
grant usage on schema waybill to ${ROLES};
grant select on waybill.schema_revision to ${ROLES};
grant execute on function
  waybill.event_id(timestamptz, uuid), waybill.id_floor(timestamptz), waybill.derived_id(uuid, uuid),
  waybill.first_of_millisecond(uuid), waybill.last_of_millisecond(uuid), waybill.event_type_matches(text, text)
  to ${ROLES};
grant execute on function waybill.create_day_partitions(date, integer) to waybill_dispatcher, waybill_operator;
`;

/** The requests of a tenant's admins: row-level security leaves them their tenant's rows. */
const APP = `
grant select on waybill.tenants, waybill.events, waybill.attempts, waybill.replicas to waybill_app;
grant update (target_count) on waybill.events to waybill_app;
grant select, insert, update on waybill.endpoints, waybill.endpoint_secrets, waybill.deliveries to waybill_app;
grant select, insert, delete on waybill.subscriptions to waybill_app;
grant select, update, delete on waybill.circuits to waybill_app;
grant select, delete on waybill.rate_tokens to waybill_app;
-- Update only to lock a row before it is taken away.
grant select, insert, update, delete on waybill.delivery_queue to waybill_app;
grant select, update (resolved_at) on waybill.dead_letters to waybill_app;
grant select, insert on waybill.replays to waybill_app;
`;

/** What a request brings before its tenant is known, and what it leaves: keys are looked up, events are stored. */
const INTAKE = `
grant select (id, suspended_at) on waybill.tenants to waybill_intake;
grant select (tenant_id, id, secret_digest, scopes, expires_at, revoked_at) on waybill.api_keys to waybill_intake;
grant select on waybill.endpoints, waybill.subscriptions to waybill_intake;
grant select, insert on waybill.idempotency_keys, waybill.events, waybill.deliveries to waybill_intake;
grant select, insert on waybill.delivery_queue to waybill_intake;
-- What a repeated key is answered with shows its deliveries' states.
grant select on waybill.circuits to waybill_intake;
`;

/** Claims, sends, records, keeps up: the queue and its history over all tenants, no API keys. */
const DISPATCHER = `
grant select on waybill.tenants, waybill.endpoint_secrets, waybill.subscriptions to waybill_dispatcher;
grant select, update on waybill.endpoints to waybill_dispatcher;
grant select, insert on waybill.events to waybill_dispatcher;
grant select, insert, update on
  waybill.deliveries, waybill.attempts, waybill.dead_letters, waybill.circuits, waybill.rate_tokens to waybill_dispatcher;
grant select, insert, update, delete on
  waybill.delivery_queue, waybill.announcements, waybill.idempotency_keys, waybill.replicas to waybill_dispatcher;
`;

/** The platform's operator: tenants and their first keys; of the rest only what its gauges count. */
const OPERATOR = `
grant select, insert, update on waybill.tenants, waybill.api_keys to waybill_operator;
grant select on waybill.delivery_queue, waybill.dead_letters, waybill.endpoints, waybill.circuits to waybill_operator;
`;

/** Who may touch what. TRUNCATE and REFERENCES nobody may: both pass by row-level security. */
export const ROLE_GRANTS = [EVERYBODY, APP, INTAKE, DISPATCHER, OPERATOR].join('');

export const REVOKE_GRANTS = `
revoke all on all tables in schema waybill from ${ROLES};
revoke all on all functions in schema waybill from ${ROLES};
grant execute on all functions in schema waybill to public;
revoke usage on schema waybill from ${ROLES};
`;
