/** Pieces of the product's SQL by which the proxy knows a statement. A test asserts that its fault was hit. */
export const CLAIM = 'as c (tenant_id, endpoint_id, quota, watermark_ms)';
export const RECORD = 'insert into waybill.attempts';
export const FIND_LAPSED = 'q.lease_until < now()';
export const DISCOVER = 'order by q.due_at, q.tenant_id, q.endpoint_id';
