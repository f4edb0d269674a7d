import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Query,
  Res,
} from '@nestjs/common';
import type { Response } from 'express';
import { deleteConsumer } from '#endpoints';
import { formatId, readConsumerReference, readConsumerUid } from '#runtime';
import {
  ensureConsumer,
  findConsumer,
  listConsumers,
  updateConsumer,
  type Consumer,
  type KeyHolder,
} from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { etagOf, expectationOf } from '../http/if-match.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { Operation } from '../http/operation.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { checkMetadata } from '../publish/read-metadata.js';
import { consumerView } from './consumer-view.js';
import { CreateConsumerDto } from './create-consumer.dto.js';
import { ListConsumersDto } from './list-consumers.dto.js';
import { PatchConsumerDto } from './patch-consumer.dto.js';

const LIST = 'consumers';

/** /v1/consumers */
@Controller('v1/consumers')
export class ConsumersController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'ensureConsumer',
    summary: 'Make a consumer, or get the one of its uid',
    description:
      '201 when it was made, 200 when there was one; whatever else the body says changes nothing then.',
  })
  @Post()
  @RequireScope('consumers')
  @JsonBody('object')
  async ensure(
    @CurrentKey() key: KeyHolder,
    @FromCreation() creation: Creation,
    @Body() body: CreateConsumerDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const input = { uid: readConsumerUid(body.uid), name: body.name, metadata: metadataOf(body.metadata) };
    const ensured = await this.context.createOnce<{ consumer: Consumer; made: boolean }>(
      key.tenantId,
      creation,
      {
        create: (tx) => ensureConsumer(tx, key.tenantId, input),
        idOf: ({ consumer }) => consumer.id,
        read: async (tx, id) => ({ consumer: await findConsumer(tx, key.tenantId, { id }), made: true }),
      },
    );
    const { consumer, made } = ensured.made;
    response.status(made ? 201 : 200);
    response.setHeader('location', `/v1/consumers/${formatId('consumer', consumer.id)}`);
    response.setHeader('etag', etagOf(consumer.version));
    return consumerView(consumer);
  }

  @Operation({ id: 'listConsumers', summary: 'List consumers, newest first' })
  @Get()
  @RequireScope('consumers')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListConsumersDto) {
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = {
      limit: page.limit + 1,
      afterId: page.after?.[0] ?? null,
      uid: query.uid === undefined ? null : readConsumerUid(query.uid),
    };
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(key.tenantId, (tx) => listConsumers(tx, key.tenantId, filter));
      return toPage(list, rows, page.limit, ({ id }) => [id], consumerView);
    });
  }

  @Operation({ id: 'readConsumer', summary: 'Read a consumer' })
  @Get(':id')
  @RequireScope('consumers')
  async read(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Res({ passthrough: true }) response: Response,
  ) {
    const reference = readConsumerReference(id);
    const found = await this.context.inTenant(key.tenantId, (tx) =>
      findConsumer(tx, key.tenantId, reference),
    );
    response.setHeader('etag', etagOf(found.version));
    return consumerView(found);
  }

  @Operation({
    id: 'updateConsumer',
    summary: 'Change a consumer',
    description: 'What is left out stays as it is; the uid never changes.',
  })
  @Patch(':id')
  @RequireScope('consumers')
  @JsonBody('object')
  async update(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: PatchConsumerDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const reference = readConsumerReference(id);
    const change = { name: body.name, metadata: metadataOf(body.metadata) };
    const options = { expects: expectationOf(ifMatch) };
    const changed = await this.context.inTenant(key.tenantId, (tx) =>
      updateConsumer(tx, key.tenantId, reference, change, options),
    );
    response.setHeader('etag', etagOf(changed.version));
    return consumerView(changed);
  }

  @Operation({
    id: 'deleteConsumer',
    summary: 'Delete a consumer with its endpoints',
    description: 'What they are owed is cancelled; the uid is free.',
  })
  @Delete(':id')
  @HttpCode(204)
  @RequireScope('consumers')
  async delete(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    const { inTenant, hints } = this.context;
    const { tenantId } = key;
    const reference = readConsumerReference(id);
    const options = { expects: expectationOf(ifMatch) };
    const endpointIds = await inTenant(tenantId, (tx) => deleteConsumer(tx, tenantId, reference, options));
    // What its endpoints are still owed is cancelled by whoever looks next.
    hints.notify(endpointIds.map((endpointId) => ({ tenantId, endpointId })));
  }
}

/** Left out is left out, and null is none. */
function metadataOf(value: unknown): Record<string, string> | null | undefined {
  return value === undefined || value === null ? value : checkMetadata(value, 'metadata');
}
