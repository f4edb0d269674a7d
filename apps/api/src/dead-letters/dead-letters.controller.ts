import { Controller, Get, Param, Query } from '@nestjs/common';
import { listDeadLetters, readDeadLetter } from '#outbox';
import { AppError, parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { Operation } from '../http/operation.js';
import { betweenTimes } from '../http/between-times.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { deadLetterView } from './dead-letter-view.js';
import { ListDeadLettersDto } from './list-dead-letters.dto.js';

const LIST = 'dead-letters';

/** /v1/dead-letters */
@Controller('v1/dead-letters')
export class DeadLettersController {
  constructor(private readonly context: ApiContext) {}

  @Operation({ id: 'listDeadLetters', summary: 'List dead letters, those that died last first' })
  @Get()
  @RequireScope('deliveries:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListDeadLettersDto) {
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string, string]>(list, ['time', 'uuid'], query);
    const died = betweenTimes('died', query);
    const filter = {
      after: page.after && { diedAt: page.after[0], deliveryId: page.after[1] },
      endpointId: query.endpoint_id === undefined ? null : parseId('endpoint', query.endpoint_id),
      resolved: query.resolved === undefined ? null : query.resolved === 'true',
      diedAfter: died.after,
      diedBefore: died.before,
      limit: page.limit + 1,
    };
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(key.tenantId, (tx) =>
        listDeadLetters(tx, key.tenantId, filter),
      );
      return toPage(list, rows, page.limit, ({ place }) => [place.diedAt, place.deliveryId], deadLetterView);
    });
  }

  @Operation({ id: 'readDeadLetter', summary: 'Read a dead letter' })
  @Get(':delivery_id')
  @RequireScope('deliveries:read')
  async read(@CurrentKey() key: KeyHolder, @Param('delivery_id') id: string) {
    const deliveryId = parseId('delivery', id);
    const letter = await this.context.inTenant(key.tenantId, (tx) =>
      readDeadLetter(tx, key.tenantId, deliveryId),
    );
    if (letter === null) throw new AppError('dead_letter_not_found');
    return deadLetterView(letter);
  }
}
