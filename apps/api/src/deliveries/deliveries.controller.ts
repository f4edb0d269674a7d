import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { Request } from 'express';
import {
  cancelDelivery,
  explainDelivery,
  listDeliveries,
  readDelivery,
  readStanding,
  replayDelivery,
  type DeliveryState,
} from '#outbox';
import { AppError, formatId, parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { listOfConsumer, readConsumerFilter } from '../consumers/consumer-filter.js';
import { createdBetween } from '../http/created-between.js';
import { readPage, toPage } from '../http/page.js';
import { attemptView, deliveryView } from './delivery-view.js';
import { explanationView } from './explanation-view.js';
import { ListDeliveriesDto } from './list-deliveries.dto.js';
import { refuseBody } from './refuse-body.js';

const LIST = 'deliveries';

/** /v1/deliveries */
@Controller('v1/deliveries')
export class DeliveriesController {
  constructor(private readonly context: ApiContext) {}

  @Get()
  @RequireScope('deliveries:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListDeliveriesDto) {
    const page = readPage<[string, string]>(LIST, ['uuid', 'uuid'], query);
    const consumer = readConsumerFilter(query.consumer);
    const filter = {
      after: page.after && { eventId: page.after[0], endpointId: page.after[1] },
      endpointId: query.endpoint_id === undefined ? null : parseId('endpoint', query.endpoint_id),
      eventId: query.event_id === undefined ? null : parseId('event', query.event_id),
      state: query.state ?? null,
      ...createdBetween(query),
      limit: page.limit + 1,
    };
    const rows = await this.context.inTenant(key.tenantId, (tx) =>
      listOfConsumer(tx, key.tenantId, consumer, (consumerId) =>
        listDeliveries(tx, key.tenantId, { ...filter, consumerId }),
      ),
    );
    return toPage(LIST, rows, page.limit, (row) => [row.eventId, row.endpointId], deliveryView);
  }

  @Get(':id')
  @RequireScope('deliveries:read')
  async read(@CurrentKey() key: KeyHolder, @Param('id') id: string) {
    return this.show(key, parseId('delivery', id));
  }

  @Get(':id/explain')
  @RequireScope('deliveries:read')
  async explain(@CurrentKey() key: KeyHolder, @Param('id') id: string) {
    const { inTenant, config } = this.context;
    const deliveryId = parseId('delivery', id);
    const standing = await inTenant(key.tenantId, (tx) => readStanding(tx, key.tenantId, deliveryId));
    if (standing === null) throw new AppError('delivery_not_found');
    return explanationView(standing, explainDelivery(standing, config));
  }

  @Post(':id/cancel')
  @HttpCode(200)
  @RequireScope('deliveries:write')
  async cancel(@CurrentKey() key: KeyHolder, @Param('id') id: string, @Req() request: Request) {
    const { inTenant, logger } = this.context;
    const deliveryId = parseId('delivery', id);
    await refuseBody(request);
    const result = await inTenant(key.tenantId, (tx) => cancelDelivery(tx, key.tenantId, deliveryId));
    if (result.kind === 'not_found') throw new AppError('delivery_not_found');
    if (result.kind === 'not_cancellable') {
      throw new AppError(
        'delivery_not_cancellable',
        `The delivery is ${result.state}; only one that waits for an attempt can be cancelled.`,
        { details: [{ field: 'state', reason: result.state }] },
      );
    }
    logger.info({
      event: 'delivery.cancelled',
      delivery_id: id,
      tenant_id: formatId('tenant', key.tenantId),
      api_key_id: formatId('api_key', key.keyId),
    });
    return this.show(key, deliveryId);
  }

  @Post(':id/replay')
  @HttpCode(202)
  @RequireScope('deliveries:write')
  async replay(@CurrentKey() key: KeyHolder, @Param('id') id: string, @Req() request: Request) {
    const { inTenant, config, hints, logger } = this.context;
    const deliveryId = parseId('delivery', id);
    await refuseBody(request);
    const result = await inTenant(key.tenantId, (tx) =>
      replayDelivery(tx, key.tenantId, deliveryId, { apiKeyId: key.keyId, maxAgeMs: config.maxAgeMs }),
    );
    if (result.kind === 'not_found') throw new AppError('delivery_not_found');
    if (result.kind === 'endpoint_deleted') throw new AppError('endpoint_deleted');
    if (result.kind === 'not_replayable') {
      throw new AppError(
        'delivery_not_replayable',
        `The delivery is ${result.state}; only a finished one can be replayed.${sendNow(result.state)}`,
        {
          details: [{ field: 'state', reason: result.state }],
        },
      );
    }
    hints.notify([{ tenantId: key.tenantId, endpointId: result.endpointId }]);
    const replayId = formatId('replay', result.replayId);
    logger.info({
      event: 'delivery.replayed',
      replay_id: replayId,
      delivery_id: id,
      tenant_id: formatId('tenant', key.tenantId),
      api_key_id: formatId('api_key', key.keyId),
    });
    return { id: replayId, delivery_id: id, state: 'pending' };
  }

  private async show(key: KeyHolder, deliveryId: string) {
    const delivery = await this.context.inTenant(key.tenantId, (tx) =>
      readDelivery(tx, key.tenantId, deliveryId),
    );
    if (delivery === null) throw new AppError('delivery_not_found');
    return {
      ...deliveryView(delivery),
      attempts: delivery.attempts.map((attempt) => attemptView(delivery.id, attempt)),
    };
  }
}

function sendNow(state: DeliveryState): string {
  const waits = state === 'pending' || state === 'failed';
  return waits ? ' To send it now, cancel it first, then replay it.' : '';
}
