import { Initial0001 } from './0001-initial.js';
import { DeliveryPolicies0002 } from './0002-delivery-policies.js';
import { TenantIsolation0003 } from './0003-tenant-isolation.js';
import { SecretsAtRest0004 } from './0004-secrets-at-rest.js';
import { OperatorAndKeys0005 } from './0005-operator-and-keys.js';
import { Consumers0006 } from './0006-consumers.js';
import { IdempotentCreation0007 } from './0007-idempotent-creation.js';
import { EventFilters0008 } from './0008-event-filters.js';

/** Every migration, in the order in which they run. Released ones are never edited. */
export const MIGRATIONS = [
  Initial0001,
  DeliveryPolicies0002,
  TenantIsolation0003,
  SecretsAtRest0004,
  OperatorAndKeys0005,
  Consumers0006,
  IdempotentCreation0007,
  EventFilters0008,
];

/** The schema revision this code is written for: the number of its newest migration. */
export const CODE_REVISION = MIGRATIONS.length;
