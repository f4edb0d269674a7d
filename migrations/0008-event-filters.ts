import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Revision 8: filters on payloads. A filter is kept as it was given, and as the jsonpath predicate that both doors of
 * accept decide it by. Older code runs beside it: it delivers to endpoints whatever their filter says, so nothing is lost.
 */
export class EventFilters0008 implements MigrationInterface {
  name = 'event-filters-0000000000008';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [FILTERS, PAYLOAD_JSON, REVISION]) await runner.query(statements);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP);
  }
}

const FILTERS = `
alter table waybill.endpoints
  add column filter jsonb check (jsonb_typeof(filter) = 'object'),
  add column filter_path jsonpath,
  add constraint endpoints_filter_with_its_path check ((filter is null) = (filter_path is null));
-- Whose events must not share a statement with strangers': asked with every key.
create index endpoints_filtered on waybill.endpoints (tenant_id) where filter_path is not null;
-- True where an endpoint with a filter was passed over because jsonb cannot hold the payload.
alter table waybill.events add column unfilterable boolean not null default false;
`;

const PAYLOAD_JSON = `
-- A payload as filters see it; null where jsonb cannot hold what is good JSON: an escaped NUL, half of a surrogate pair, a
-- number with 200,000 digits.
create function waybill.payload_json(payload bytea) returns jsonb
language plpgsql immutable strict parallel safe as $$
begin
  return convert_from(payload, 'UTF8')::jsonb;
exception when data_exception or program_limit_exceeded then
  return null;
end
$$;
revoke execute on function waybill.payload_json(bytea) from public;
grant execute on function waybill.payload_json(bytea) to waybill_app, waybill_intake, waybill_dispatcher;
`;

const REVISION = `
update waybill.schema_revision set revision = 8;
`;

const DROP = `
update waybill.schema_revision set revision = 7;
drop function waybill.payload_json(bytea);
alter table waybill.events drop column unfilterable;
drop index waybill.endpoints_filtered;
alter table waybill.endpoints drop constraint endpoints_filter_with_its_path, drop column filter, drop column filter_path;
`;
