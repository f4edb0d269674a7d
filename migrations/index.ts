import { Initial0001 } from './0001-initial.js';
import { DeliveryPolicies0002 } from './0002-delivery-policies.js';
import { TenantIsolation0003 } from './0003-tenant-isolation.js';
import { EventFilters0008 } from './0008-event-filters.js';

/** Every migration, in the order in which they run. Released ones are never edited. */
export const MIGRATIONS = [Initial0001, DeliveryPolicies0002, TenantIsolation0003, EventFilters0008];

/** The schema revision this code is written for: the number of its newest migration. */
export const CODE_REVISION = MIGRATIONS.length;
