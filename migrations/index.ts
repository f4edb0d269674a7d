import { Initial0001 } from './0001-initial.js';

/** Every migration, in the order in which they run. Released ones are never edited. */
export const MIGRATIONS = [Initial0001];

/** The schema revision this code is written for: the number of its newest migration. */
export const CODE_REVISION = MIGRATIONS.length;
