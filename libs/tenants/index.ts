export { ApiKey } from './api-key.entity.js';
export { authenticateKey, type KeyHolder } from './authenticate-key.js';
export { bootstrapTenant } from './bootstrap-tenant.js';
export { createApiKey, type NewApiKey } from './create-api-key.js';
export { createTenant, type Repositories } from './create-tenant.js';
export { formatKeyText, readKeyText } from './key-text.js';
export { revokeApiKey } from './revoke-api-key.js';
export { isScope, SCOPES, type Scope } from './scopes.js';
export { Tenant } from './tenant.entity.js';
