export { AppError, type AppErrorOptions, type ErrorDetail } from './app-error.js';
export { isDatabaseUrl, readConfig, RECORD_MARGIN_MS, type Config } from './config.js';
export {
  CONSUMER_UID,
  readConsumerReference,
  readConsumerUid,
  UID_CHARACTERS_MAX,
  type ConsumerReference,
} from './consumer-reference.js';
export {
  createPool,
  isDatabaseUnavailable,
  sqlState,
  withTransaction,
  type Database,
  type DatabaseRole,
  type PoolOptions,
  type Queryable,
  type Statement,
} from './database.js';
export { openDataSource, type DataSourceOptions } from './data-source.js';
export { describeSchema } from './describe-schema.js';
export { DETAIL_REASONS, type DetailReason } from './detail-reasons.js';
export { ERRORS, type ErrorCode } from './error-table.js';
export {
  derivedId,
  formatId,
  formatIdOrNull,
  ID_PREFIXES,
  idTime,
  newId,
  parseId,
  readId,
  type Id,
  type IdKind,
} from './ids.js';
export { limitLockWait } from './limit-lock-wait.js';
export { createLogger, type Logger } from './logger.js';
export {
  assertSchemaRevision,
  createDayPartitions,
  migrate,
  migrateDown,
  PARTITION_DAYS_AHEAD,
} from './migrate.js';
export {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from './embedded-postgres/start-embedded-postgres.js';
export { type EncryptionKey } from './read-encryption-keys.js';
export { findEmbeddedUrl } from './embedded-postgres/find-embedded-url.js';
export { listen, type Listener, type ListenOptions } from './listen.js';
export { readSettledUntil } from './read-settled-until.js';
export { transactionTimeMs } from './transaction-time.js';
export { unknownSettings, type UnknownSetting } from './settings.js';
export { isMetricsAllowed } from './metrics-token.js';
export { isKeyEnv } from './read-credentials.js';
export { type VersionExpectation } from './version-expectation.js';
export { VERSION } from './version.js';
export { nestLogger } from './nest-logger.js';
export { explainFailure, runApp, type RunningApp } from './run-app.js';
