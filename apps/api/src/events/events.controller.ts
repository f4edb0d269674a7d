import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { listEvents, readEvent } from '#outbox';
import { AppError, parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { createdBetween } from '../http/created-between.js';
import { unknownField } from '../http/dto.pipe.js';
import { BodyBytes, JsonBody } from '../http/json-body.interceptor.js';
import { readPage, toPage } from '../http/page.js';
import { OBJECT_LIMITS, scanJson } from '../http/scan-json.js';
import { acceptedView, eventDocument, eventView } from './event-view.js';
import { idempotencyKeyOf } from './idempotency-key.js';
import { refusal } from './json-value.js';
import { ListEventsDto } from './list-events.dto.js';
import { publishBatch, publishEvent } from './publish-events.js';
import { readEnvelope } from './read-envelope.js';

const LIST = 'events';

/** /v1/events */
@Controller('v1/events')
export class EventsController {
  constructor(private readonly context: ApiContext) {}

  @Post()
  @RequireScope('events:write')
  @JsonBody('event')
  async publish(
    @CurrentKey() key: KeyHolder,
    @BodyBytes() bytes: Buffer,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    const idempotencyKey = idempotencyKeyOf(request);
    const rules = {
      eventBytesMax: this.context.config.eventBytesMax,
      nowMs: Date.now(),
      path: '',
      takesKey: false,
    };
    const envelope = { ...readEnvelope(bytes, scanJson(bytes), rules), idempotencyKey };
    const { event, repeated } = await publishEvent(this.context, key, envelope);
    const view = acceptedView(event);
    response.setHeader('location', `/v1/events/${view.id}`);
    if (repeated) response.setHeader('idempotency-replayed', 'true');
    return view;
  }

  @Post('batch')
  @RequireScope('events:write')
  @JsonBody('batch')
  async publishBatch(
    @CurrentKey() key: KeyHolder,
    @BodyBytes() bytes: Buffer,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    if (request.headers['idempotency-key'] !== undefined) {
      throw new AppError('invalid_idempotency_key', 'In a batch each event brings its own idempotency_key.');
    }
    const published = await publishBatch(this.context, key, this.readBatch(bytes));
    if (published.length > 0 && published.every(({ repeated }) => repeated)) {
      response.setHeader('idempotency-replayed', 'true');
    }
    return { data: published.map(({ event }) => acceptedView(event)) };
  }

  @Get()
  @RequireScope('events:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListEventsDto) {
    const page = readPage<[string]>(LIST, ['uuid'], query);
    const rows = await listEvents(this.context.readPool, key.tenantId, {
      afterId: page.after?.[0] ?? null,
      eventType: query.event_type ?? null,
      ...createdBetween(query),
      limit: page.limit + 1,
    });
    return toPage(LIST, rows, page.limit, (row) => [row.id], eventView);
  }

  @Get(':id')
  @RequireScope('events:read')
  async read(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    const event = await readEvent(this.context.readPool, key.tenantId, parseId('event', id));
    if (event === null) throw new AppError('event_not_found');
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(eventDocument(event));
  }

  private readBatch(bytes: Buffer) {
    const { eventBytesMax, batchEventsMax } = this.context.config;
    // Two levels stand around each event: it may be as deep in a batch as it may be alone.
    const limits = {
      ...OBJECT_LIMITS,
      depthMax: OBJECT_LIMITS.depthMax + 2,
      captureDepth: 3,
      itemsMax: batchEventsMax,
    };
    const root = scanJson(bytes, limits);
    const unknown = [...(root.fields?.keys() ?? [])].filter((name) => name !== 'events');
    if (unknown.length > 0) throw unknownField(unknown);
    const items = root.fields?.get('events')?.items ?? null;
    if (items === null || items.length === 0) {
      throw refusal('validation_failed', 'events', 'events must be a list of at least one event.');
    }
    const nowMs = Date.now();
    return items.map((item, index) => {
      return readEnvelope(bytes, item, { eventBytesMax, nowMs, path: `events[${index}].`, takesKey: true });
    });
  }
}
