import type { MigrationInterface, QueryRunner } from 'typeorm';
import { CATALOGUE } from './0001-initial/catalogue.js';
import { IDS, MATCHING, PARTITIONS } from './0001-initial/functions.js';
import { RECORD } from './0001-initial/history.js';
import { QUEUE } from './0001-initial/queue.js';

/**
 * Revision 1: the catalogue (tenants, keys, endpoints), the record of what happened (events, deliveries,
 * attempts: partitioned by the UTC day in the event's id) and the small hot table of what is still owed
 * (delivery_queue).
 *
 * Rules kept from the first table on: everything in the schema `waybill`; tenant_id leads every key; no foreign
 * key on events, deliveries, queue and attempts (they cost over half of a batched insert's time: one statement
 * writes all rows of an event); no volatile function inside a write.
 */
export class Initial0001 implements MigrationInterface {
  // TypeORM orders migrations by the thirteen digits at the end of their name.
  name = 'initial-0000000000001';

  async up(runner: QueryRunner): Promise<void> {
    for (const statements of [CATALOGUE, IDS, MATCHING, RECORD, QUEUE, PARTITIONS, REVISION]) {
      await runner.query(statements);
    }
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(DROP);
  }
}

/**
 * The revision of the schema and the oldest code that can run on it. A process refuses to start when its own
 * revision lies outside [serves_code_from, revision].
 */
const REVISION = `
create table waybill.schema_revision (
  only_row boolean primary key default true check (only_row),
  revision integer not null check (revision > 0),
  serves_code_from integer not null check (serves_code_from between 1 and revision)
);
insert into waybill.schema_revision (revision, serves_code_from) values (1, 1);
`;

const DROP = `
drop table waybill.schema_revision;
drop function waybill.create_day_partitions(date, integer);
drop table waybill.delivery_queue, waybill.idempotency_keys, waybill.replays, waybill.dead_letters,
  waybill.attempts, waybill.deliveries, waybill.events, waybill.subscriptions, waybill.endpoint_secrets,
  waybill.endpoints, waybill.api_keys, waybill.tenants;
drop function waybill.event_type_matches(text, text);
drop function waybill.last_of_millisecond(uuid), waybill.first_of_millisecond(uuid),
  waybill.derived_id(uuid, uuid), waybill.id_floor(timestamptz), waybill.event_id(timestamptz, uuid);
`;
