import { Body, Controller, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { addDelivery, cancelEvent, readDelivery, type AddResult, type DeliveryView } from '#outbox';
import { AppError, formatId, parseId } from '#runtime';
import type { KeyHolder, TenantTransaction } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { CreatesNothing, FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { deliveryView } from '../deliveries/delivery-view.js';
import { refuseBody } from '../deliveries/refuse-body.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { Operation } from '../http/operation.js';
import { AddDeliveryDto } from './add-delivery.dto.js';

/** As many places as a problem names at most. */
const DETAILS_MAX = 20;

/** /v1/events/:id: what is owed for an event that was accepted. */
@Controller('v1/events')
export class EventDeliveriesController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'cancelEvent',
    summary: 'Cancel what is still owed for an event',
    description:
      'Cancels every delivery of the event of which no attempt is under way. 409 when none is cancelled by then.',
  })
  @Post(':id/cancel')
  @HttpCode(200)
  @CreatesNothing('a second cancel finds what the first one left, and says so')
  @RequireScope('deliveries:write')
  async cancel(@CurrentKey() key: KeyHolder, @Param('id') id: string, @Req() request: Request) {
    const eventId = parseId('event', id);
    await refuseBody(request);
    const deliveries = await this.context.inTenant(key.tenantId, (tx) =>
      cancelEvent(tx, key.tenantId, eventId),
    );
    if (deliveries === null) throw new AppError('event_not_found');
    if (!deliveries.some(({ result }) => result === 'cancelled' || result === 'already_cancelled')) {
      const message =
        deliveries.length === 0
          ? 'The event has no deliveries.'
          : 'An attempt of each delivery is under way, or it is finished.';
      const details = deliveries
        .slice(0, DETAILS_MAX)
        .map((delivery) => ({ field: formatId('delivery', delivery.id), reason: delivery.state }));
      throw new AppError('event_not_cancellable', message, { details });
    }
    this.context.logger.info({
      event: 'event.cancelled',
      event_id: id,
      tenant_id: formatId('tenant', key.tenantId),
      api_key_id: formatId('api_key', key.keyId),
      cancelled: deliveries.filter(({ result }) => result === 'cancelled').length,
      deliveries: deliveries.length,
    });
    return {
      id,
      deliveries: deliveries.map(({ id: deliveryId, endpointId, state, result }) => ({
        id: formatId('delivery', deliveryId),
        endpoint_id: formatId('endpoint', endpointId),
        state,
        result,
      })),
    };
  }

  @Operation({
    id: 'addDelivery',
    summary: 'Deliver an event to one more endpoint',
    description:
      'Whether the endpoint subscribes to its type or not. Due at once, or at `not_before` of the event.',
  })
  @Post(':id/deliveries')
  @RequireScope('deliveries:write')
  @JsonBody('object')
  async add(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @FromCreation() creation: Creation,
    @Body() body: AddDeliveryDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { createOnce, config, hints, logger } = this.context;
    const target = { eventId: parseId('event', id), endpointId: parseId('endpoint', body.endpoint_id) };
    const show = (tx: TenantTransaction, deliveryId: string) => readDelivery(tx, key.tenantId, deliveryId);
    const { made, repeated } = await createOnce(key.tenantId, creation, {
      async create(tx) {
        const result = await addDelivery(tx, key.tenantId, target, { maxAgeMs: config.maxAgeMs });
        if (result.kind !== 'added') throw refusalOf(result);
        return orNotFound(await show(tx, result.deliveryId));
      },
      idOf: (delivery) => delivery.id,
      read: async (tx, deliveryId) => orNotFound(await show(tx, deliveryId)),
    });
    const view = deliveryView(made);
    response.setHeader('location', `/v1/deliveries/${view.id}`);
    if (!repeated) {
      hints.notify([{ tenantId: key.tenantId, endpointId: target.endpointId }]);
      logger.info({
        event: 'delivery.added',
        delivery_id: view.id,
        event_id: id,
        endpoint_id: body.endpoint_id,
        tenant_id: formatId('tenant', key.tenantId),
        api_key_id: formatId('api_key', key.keyId),
      });
    }
    return view;
  }
}

function orNotFound(delivery: DeliveryView | null): DeliveryView {
  if (delivery === null) throw new AppError('delivery_not_found');
  return delivery;
}

function refusalOf(result: Exclude<AddResult, { kind: 'added' }>): AppError {
  if (result.kind !== 'exists') return new AppError(result.kind);
  const deliveryId = formatId('delivery', result.deliveryId);
  return new AppError('delivery_exists', `The delivery ${deliveryId} is ${result.state}.`, {
    details: [
      { field: 'delivery_id', reason: deliveryId },
      { field: 'state', reason: result.state },
    ],
  });
}
