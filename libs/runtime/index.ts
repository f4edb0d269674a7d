export { AppError, type AppErrorOptions, type ErrorDetail } from './app-error.js';
export { isDatabaseUrl, readConfig, RECORD_MARGIN_MS, type Config } from './config.js';
export { readConsumerReference, readConsumerUid, type ConsumerReference } from './consumer-reference.js';
export {
  createPool,
  isDatabaseUnavailable,
  sqlState,
  withTransaction,
  type Database,
  type PoolOptions,
  type Queryable,
  type Statement,
} from './database.js';
export { openDataSource, type DataSourceOptions } from './data-source.js';
export { describeSchema } from './describe-schema.js';
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
  type IdKind,
} from './ids.js';
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
export { findEmbeddedUrl } from './embedded-postgres/find-embedded-url.js';
export { listen, type Listener, type ListenOptions } from './listen.js';
export { isMetricsAllowed } from './metrics-token.js';
export { type VersionExpectation } from './version-expectation.js';
export { VERSION } from './version.js';
export { nestLogger } from './nest-logger.js';
export { explainFailure, runApp, type RunningApp } from './run-app.js';
