import { Controller, HttpCode, Post, Req } from '@nestjs/common';
import type { Request } from 'express';
import { matchEndpoints } from '#outbox';
import { formatId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { readSingleEvent } from '../publish/read-single-event.js';

/** As many endpoints as the answer names; the counts are of all. */
const NAMED_MAX = 100;

/** /v1/events/match: who would get an event. */
@Controller('v1/events/match')
export class MatchController {
  constructor(private readonly context: ApiContext) {}

  @Post()
  @HttpCode(200)
  @RequireScope('endpoints:read')
  async match(@CurrentKey() key: KeyHolder, @Req() request: Request) {
    const event = await readSingleEvent(request, this.context.config);
    const { endpoints, matching, passedOver } = await this.context.inTenant(key.tenantId, (tx) =>
      matchEndpoints(tx, key.tenantId, event, NAMED_MAX),
    );
    return {
      matching,
      passed_over: passedOver,
      endpoints: endpoints.map(({ id, verdict }) => ({ endpoint_id: formatId('endpoint', id), verdict })),
    };
  }
}
