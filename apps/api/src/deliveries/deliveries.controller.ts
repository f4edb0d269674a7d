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
  type ReplayResult,
} from '#outbox';
import { AppError, formatId, parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { CreatesNothing, FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { createdBetween } from '../http/between-times.js';
import { Operation } from '../http/operation.js';
import { listOfConsumer, readConsumerFilter } from '../consumers/consumer-filter.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { attemptView, deliveryView } from './delivery-view.js';
import { explanationView } from './explanation-view.js';
import { ListDeliveriesDto } from './list-deliveries.dto.js';
import { refuseBody } from './refuse-body.js';

const LIST = 'deliveries';

/** /v1/deliveries */
@Controller('v1/deliveries')
export class DeliveriesController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'listDeliveries',
    summary: 'List deliveries, newest event first',
    description: 'Order and time bounds go by the time of the event.',
  })
  @Get()
  @RequireScope('deliveries:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListDeliveriesDto) {
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string, string]>(list, ['uuid', 'uuid'], query);
    const consumer = readConsumerFilter(query.consumer);
    const filter = {
      after: page.after && { eventId: page.after[0], endpointId: page.after[1] },
      endpointId: query.endpoint_id === undefined ? null : parseId('endpoint', query.endpoint_id),
      eventId: query.event_id === undefined ? null : parseId('event', query.event_id),
      state: query.state ?? null,
      ...createdBetween(query),
      limit: page.limit + 1,
    };
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(key.tenantId, (tx) =>
        listOfConsumer(tx, key.tenantId, consumer, (consumerId) =>
          listDeliveries(tx, key.tenantId, { ...filter, consumerId }),
        ),
      );
      return toPage(list, rows, page.limit, (row) => [row.eventId, row.endpointId], deliveryView);
    });
  }

  @Operation({ id: 'readDelivery', summary: 'Read a delivery with its attempts' })
  @Get(':id')
  @RequireScope('deliveries:read')
  async read(@CurrentKey() key: KeyHolder, @Param('id') id: string) {
    return this.show(key, parseId('delivery', id));
  }

  @Operation({
    id: 'explainDelivery',
    summary: 'Explain why a delivery is where it is, and what would move it',
  })
  @Get(':id/explain')
  @RequireScope('deliveries:read')
  async explain(@CurrentKey() key: KeyHolder, @Param('id') id: string) {
    const { inTenant, config } = this.context;
    const deliveryId = parseId('delivery', id);
    const standing = await inTenant(key.tenantId, (tx) => readStanding(tx, key.tenantId, deliveryId));
    if (standing === null) throw new AppError('delivery_not_found');
    return explanationView(standing, explainDelivery(standing, config));
  }

  @Operation({ id: 'cancelDelivery', summary: 'Cancel a delivery that waits for an attempt' })
  @Post(':id/cancel')
  @HttpCode(200)
  @CreatesNothing('of two cancels the second finds it cancelled and is refused')
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

  @Operation({
    id: 'replayDelivery',
    summary: 'Make a finished delivery due again',
    description:
      'With a fresh budget of attempts, whose numbers go on. The receiver sees the same `webhook-id`.',
  })
  @Post(':id/replay')
  @HttpCode(202)
  @RequireScope('deliveries:write')
  async replay(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @FromCreation() creation: Creation,
    @Req() request: Request,
  ) {
    const { createOnce, config, hints, logger } = this.context;
    const deliveryId = parseId('delivery', id);
    await refuseBody(request);
    const { made, repeated } = await createOnce<AskedReplay>(key.tenantId, creation, {
      async create(tx) {
        const options = { apiKeyId: key.keyId, maxAgeMs: config.maxAgeMs };
        const result = await replayDelivery(tx, key.tenantId, deliveryId, options);
        if (result.kind !== 'replayed') throw refusalOf(result);
        return { ...result, state: 'pending' };
      },
      idOf: ({ replayId }) => replayId,
      async read(tx, replayId) {
        const delivery = await readDelivery(tx, key.tenantId, deliveryId);
        if (delivery === null) throw new AppError('delivery_not_found');
        return { replayId, endpointId: delivery.endpointId, state: delivery.state };
      },
    });
    const replayId = formatId('replay', made.replayId);
    if (!repeated) {
      hints.notify([{ tenantId: key.tenantId, endpointId: made.endpointId }]);
      logger.info({
        event: 'delivery.replayed',
        replay_id: replayId,
        delivery_id: id,
        tenant_id: formatId('tenant', key.tenantId),
        api_key_id: formatId('api_key', key.keyId),
      });
    }
    return { id: replayId, delivery_id: id, state: made.state };
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

/** A replay that was asked for, and the state of its delivery. */
interface AskedReplay {
  readonly replayId: string;
  readonly endpointId: string;
  readonly state: DeliveryState;
}

function refusalOf(result: Exclude<ReplayResult, { kind: 'replayed' }>): AppError {
  if (result.kind === 'not_found') return new AppError('delivery_not_found');
  if (result.kind === 'endpoint_deleted') return new AppError('endpoint_deleted');
  return new AppError(
    'delivery_not_replayable',
    `The delivery is ${result.state}; only a finished one can be replayed.${sendNow(result.state)}`,
    { details: [{ field: 'state', reason: result.state }] },
  );
}

function sendNow(state: DeliveryState): string {
  const waits = state === 'pending' || state === 'failed';
  return waits ? ' To send it now, cancel it first, then replay it.' : '';
}
