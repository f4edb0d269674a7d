/**
 * Every stable error code with its HTTP status and title: the one table, held equal to
 * docs/reference/errors.md by a test. Codes are an API: they may be added, never renamed.
 */
export const ERRORS = {
  // The request as bytes
  invalid_json: { status: 400, title: 'The body is not valid JSON.' },
  invalid_encoding: { status: 400, title: 'The body is not valid UTF-8.' },
  json_too_deep: { status: 400, title: 'The JSON is nested too deeply.' },
  json_too_many_keys: { status: 400, title: 'The JSON holds too many object keys.' },
  duplicate_field: { status: 400, title: 'A field is given twice.' },
  invalid_request: { status: 400, title: 'The request could not be read.' },
  body_too_large: { status: 413, title: 'The body is too large.' },
  event_too_large: { status: 413, title: 'An event is too large.' },
  unsupported_content_type: { status: 415, title: 'The body must be application/json.' },
  unsupported_content_encoding: { status: 415, title: 'Compressed request bodies are not accepted.' },
  request_timeout: { status: 408, title: 'The request did not arrive in time.' },
  headers_too_large: { status: 431, title: 'The request line and headers are too large.' },

  // The request as content
  unknown_field: { status: 422, title: 'A field is not known here.' },
  validation_failed: { status: 422, title: 'The content was refused.' },
  invalid_event_type: { status: 422, title: 'The event type is not acceptable.' },
  invalid_destination: { status: 422, title: 'The destination URL is not acceptable.' },
  too_many_events: { status: 422, title: 'The batch holds too many events.' },
  invalid_cursor: { status: 422, title: 'The cursor was not made by this list.' },
  invalid_limit: { status: 422, title: 'The limit must be from 1 to 100.' },
  invalid_id: { status: 400, title: 'The id is not of the expected kind.' },
  invalid_consumer_uid: { status: 400, title: 'The uid of a consumer is not acceptable.' },
  invalid_idempotency_key: { status: 400, title: 'The idempotency key is not acceptable.' },

  // Who asks
  authentication_required: { status: 401, title: 'An API key is required.' },
  invalid_api_key: { status: 401, title: 'The API key is not valid.' },
  insufficient_scope: { status: 403, title: 'The API key lacks a scope.' },
  tenant_suspended: { status: 403, title: 'The tenant is suspended.' },
  invalid_operator_key: { status: 401, title: 'The operator key is not valid.' },
  invalid_metrics_token: { status: 401, title: 'The metrics token is missing or wrong.' },

  // What is asked for
  route_not_found: { status: 404, title: 'There is no such route.' },
  method_not_allowed: { status: 405, title: 'The route does not take this method.' },
  consumer_not_found: { status: 404, title: 'There is no such consumer.' },
  endpoint_not_found: { status: 404, title: 'There is no such endpoint.' },
  event_not_found: { status: 404, title: 'There is no such event.' },
  delivery_not_found: { status: 404, title: 'There is no such delivery.' },
  dead_letter_not_found: { status: 404, title: 'There is no such dead letter.' },
  secret_not_found: { status: 404, title: 'The endpoint has no such secret.' },
  tenant_not_found: { status: 404, title: 'There is no such tenant.' },
  api_key_not_found: { status: 404, title: 'There is no such API key.' },
  api_key_ended: { status: 409, title: 'The API key is expired or revoked.' },
  last_managing_key: { status: 409, title: 'No other live key of the tenant may manage its keys.' },
  idempotency_conflict: { status: 409, title: 'The idempotency key was used for another request.' },
  idempotency_key_in_progress: { status: 503, title: 'A request with this idempotency key is still open.' },
  delivery_not_replayable: { status: 409, title: 'The delivery cannot be replayed in its state.' },
  delivery_not_cancellable: { status: 409, title: 'The delivery cannot be cancelled in its state.' },
  event_not_cancellable: { status: 409, title: 'No delivery of the event can be cancelled.' },
  delivery_exists: { status: 409, title: 'The event already has a delivery to this endpoint.' },
  addressee_mismatch: { status: 409, title: 'The event is not for whom the endpoint is.' },
  endpoint_deleted: { status: 409, title: 'The endpoint of this delivery was deleted.' },
  endpoint_disabled: { status: 409, title: 'The endpoint of this delivery is disabled.' },
  last_secret: { status: 409, title: 'The secret that stays cannot be revoked.' },
  too_many_secrets: { status: 409, title: 'The endpoint has too many live secrets.' },
  stale_version: { status: 412, title: 'The resource has changed since it was read.' },

  // Our side
  database_unavailable: { status: 503, title: 'The database cannot be reached.' },
  shutting_down: { status: 503, title: 'The process is stopping.' },
  secret_unreadable: { status: 500, title: 'A sealed secret cannot be opened.' },
  internal_error: { status: 500, title: 'Something went wrong on our side.' },

  // At start and on the command line; never in an answer
  invalid_configuration: { status: 500, title: 'The configuration is not acceptable.' },
  database_role_unavailable: { status: 500, title: 'The database login may not take the role it needs.' },
  schema_missing: { status: 500, title: 'The database holds no Waybill schema.' },
  schema_revision_mismatch: { status: 500, title: 'The database is at another schema revision.' },
  encryption_key_missing: { status: 500, title: 'No encryption key is set.' },
  encryption_key_mismatch: { status: 500, title: 'The encryption key is not that of this database.' },
} as const satisfies Record<string, { status: number; title: string }>;

/** A stable error code. */
export type ErrorCode = keyof typeof ERRORS;
