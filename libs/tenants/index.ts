export type { ApiKey } from './api-key.js';
export { NAME_CHARACTERS_MAX } from './assert-name.js';
export { authenticateKeys, type KeyHolder } from './authenticate-keys.js';
export { bootstrapTenant } from './bootstrap-tenant.js';
export { Consumer } from './consumer.entity.js';
export { createApiKey, type CreatedApiKey, type NewApiKey } from './create-api-key.js';
export { createTenant } from './create-tenant.js';
export { deleteTenant } from './delete-tenant.js';
export { ensureConsumer, type NewConsumer } from './ensure-consumer.js';
export { findApiKey } from './find-api-key.js';
export {
  CONSUMER_NAME_CHARACTERS_MAX,
  findConsumer,
  listConsumers,
  readConsumerId,
} from './find-consumer.js';
export { findTenant } from './find-tenant.js';
export { formatKeyText, readKeyText } from './key-text.js';
export { listApiKeys } from './list-api-keys.js';
export { listTenants, type TenantFilter } from './list-tenants.js';
export { noteKeyUse } from './note-key-use.js';
export { purgeTenants, type PurgedTenant } from './purge-tenants.js';
export { renameApiKey } from './rename-api-key.js';
export { renameTenant } from './rename-tenant.js';
export { revokeApiKey, revokeOwnApiKey } from './revoke-api-key.js';
export {
  OVERLAP_SECONDS_DEFAULT,
  OVERLAP_SECONDS_MAX,
  rotateApiKey,
  type KeyRotation,
} from './rotate-api-key.js';
export { assertMayGive, isScope, readScopes, SCOPES, type Scope } from './scopes.js';
export { suspendTenant } from './suspend-tenant.js';
export type { Tenant } from './tenant.js';
export { lockConsumer, updateConsumer, type ConsumerChange } from './update-consumer.js';
export { withTenant, type Repositories, type TenantTransaction } from './with-tenant.js';
