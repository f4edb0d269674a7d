/** SQL: the seeded backlog as jobs for the other queues, each with all that its request needs, so that none has to read. */
export const BACKLOG_JOBS = `
select q.due_at, json_build_object('tenantId', q.tenant_id, 'eventId', q.event_id, 'endpointId', q.endpoint_id,
  'deliveryId', q.delivery_id, 'eventType', e.event_type, 'text', convert_from(e.payload, 'UTF8'), 'url', p.url,
  'secret', s.secret) as job
from waybill.delivery_queue q
join waybill.events e on e.tenant_id = q.tenant_id and e.id = q.event_id
join waybill.endpoints p on p.tenant_id = q.tenant_id and p.id = q.endpoint_id
join waybill.endpoint_secrets s on s.tenant_id = q.tenant_id and s.endpoint_id = q.endpoint_id
order by q.due_at`;

/** What to send for such a job. */
export function requestOf(job) {
  return { ...job, body: Buffer.from(job.text) };
}
