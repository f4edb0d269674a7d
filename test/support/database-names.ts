/** The migrated database that every test database is a copy of. */
export const TEMPLATE_DATABASE = 'waybill_template';

/** The same server and credentials, another database. */
export function databaseUrl(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}
