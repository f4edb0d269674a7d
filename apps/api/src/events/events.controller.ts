import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { listEvents, readEvent } from '#outbox';
import { AppError, parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { createdBetween } from '../http/between-times.js';
import { Operation } from '../http/operation.js';
import { listOfConsumer, readConsumerFilter } from '../consumers/consumer-filter.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { eventDocument, eventView } from './event-view.js';
import { ListEventsDto } from './list-events.dto.js';

const LIST = 'events';

/** /v1/events, as far as it is read; publish/ is where events come in. */
@Controller('v1/events')
export class EventsController {
  constructor(private readonly context: ApiContext) {}

  @Operation({ id: 'listEvents', summary: 'List events, newest first' })
  @Get()
  @RequireScope('events:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListEventsDto) {
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string]>(list, ['uuid'], query);
    const consumer = readConsumerFilter(query.consumer);
    const filter = {
      afterId: page.after?.[0] ?? null,
      eventType: query.event_type ?? null,
      ...createdBetween(query),
      limit: page.limit + 1,
    };
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(key.tenantId, (tx) =>
        listOfConsumer(tx, key.tenantId, consumer, (consumerId) =>
          listEvents(tx, key.tenantId, { ...filter, consumerId }),
        ),
      );
      return toPage(list, rows, page.limit, (row) => [row.id], eventView);
    });
  }

  @Operation({ id: 'readEvent', summary: 'Read an event with its payload and its deliveries' })
  @Get(':id')
  @RequireScope('events:read')
  async read(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    const eventId = parseId('event', id);
    const event = await this.context.inTenant(key.tenantId, (tx) => readEvent(tx, key.tenantId, eventId));
    if (event === null) throw new AppError('event_not_found');
    response.setHeader('content-type', 'application/json; charset=utf-8');
    response.end(eventDocument(event));
  }
}
