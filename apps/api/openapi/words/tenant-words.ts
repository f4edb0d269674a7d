import { time, wherever, type Words } from './word.js';

/** Tenants, as the operator sees them. */
export const TENANT_WORDS: Words = {
  ...wherever(['Tenant', 'CreateTenant', 'PatchTenant', 'CreateTenantAnswer'], {
    name: { description: 'For people; without control characters.', examples: ['Acme'] },
  }),
  ...wherever(['Tenant', 'CreateTenantAnswer'], {
    status: {
      description:
        '`active`; `suspended`: its keys are refused, and what it is owed waits; `deleting`: its rows are being taken away.',
      examples: ['active'],
    },
  }),
  suspended_at: time('When it was suspended; null unless it is.', null),
  deleted_at: time('When it was deleted; null unless it was.', null),
  first_key: { description: 'The first API key of the tenant; null when none is asked for.' },
  deleting: { description: 'Only tenants that are being deleted; else only others.', examples: [false] },
};
