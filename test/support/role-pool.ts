import { type DatabaseRole } from '#runtime';
import { Pool } from 'pg';

/** A pool whose sessions are under a role of ours, as the apps' are. */
export function rolePool(url: string, role: DatabaseRole, max = 2): Pool {
  const pool = new Pool({
    connectionString: url,
    max,
    application_name: 'waybill-test-role',
    options: `-c role=${role}`,
  });
  pool.on('error', () => undefined);
  return pool;
}
