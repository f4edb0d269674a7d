import { Controller, HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { matchEndpoints } from '#outbox';
import { formatId } from '#runtime';
import { findConsumer, type KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { CreatesNothing } from '../creation/creation.js';
import { Operation } from '../http/operation.js';
import { readSingleEvent } from '../publish/read-single-event.js';

/** As many endpoints as the answer names; the counts are of all. */
const NAMED_MAX = 100;

/** /v1/events/match: who would get an event. */
@Controller('v1/events/match')
export class MatchController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'matchEvent',
    summary: 'Ask which endpoints would get an event',
    description:
      'Stores nothing. Names at most 100 endpoints, those that get it first; the counts are of all.',
  })
  @Post()
  @HttpCode(200)
  @CreatesNothing('it only asks, and stores nothing')
  @RequireScope('endpoints:read')
  async match(@CurrentKey() key: KeyHolder, @Req() request: Request) {
    const event = await readSingleEvent(request, this.context.config);
    const { endpoints, matching, passedOver } = await this.context.inTenant(key.tenantId, async (tx) => {
      const consumerId = event.consumer && (await findConsumer(tx, key.tenantId, event.consumer)).id;
      return matchEndpoints(tx, key.tenantId, { ...event, consumerId }, NAMED_MAX);
    });
    return {
      matching,
      passed_over: passedOver,
      endpoints: endpoints.map(({ id, verdict }) => ({ endpoint_id: formatId('endpoint', id), verdict })),
    };
  }
}
