export { assertEncryptionKey, verifyCanaries } from './canary.js';
export { DataKeyCache, type ReadKey } from './data-key-cache.js';
export { provideDataKey, readDataKey, type DataKey } from './data-keys.js';
export { openSecret, sealSecret, type SecretRef } from './endpoint-secret.js';
export { isSealedInto } from './is-sealed-into.js';
export { createKeyring, type Keyring } from './keyring.js';
export { measureEncryption, type EncryptionCounts } from './measure-encryption.js';
export { rewrapDataKeys, type RewrapProgress } from './rewrap-data-keys.js';
export { sealClearSecrets } from './seal-clear-secrets.js';
