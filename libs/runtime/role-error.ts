import { AppError } from './app-error.js';
import { sqlState, type DatabaseRole } from './database.js';

const NO_SUCH_ROLE = '22023';
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * The first statement or connection under a role tells whether the server knows it and the login may take it: its failure
 * as `database_role_unavailable`, saying what mends it. Any other failure is given back as it is.
 */
export function toRoleError(error: unknown, role: DatabaseRole | null): unknown {
  const name = role ?? 'its role';
  if (sqlState(error) === NO_SUCH_ROLE) {
    const message = `The database server has no role ${name}. Run: waybill migrate`;
    return new AppError('database_role_unavailable', message, { cause: error });
  }
  if (sqlState(error) === INSUFFICIENT_PRIVILEGE) {
    const message =
      `The login of DATABASE_URL may not act as ${name}, or this database was not migrated since roles came. ` +
      `Run: waybill migrate. If its own login is another, then as an administrator: grant ${name} to this login`;
    return new AppError('database_role_unavailable', message, { cause: error });
  }
  return error;
}
