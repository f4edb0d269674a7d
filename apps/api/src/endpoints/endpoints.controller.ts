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
import {
  createEndpoint,
  deleteEndpoint,
  findEndpoint,
  listEndpoints,
  readCircuit,
  readDeliveryPolicy,
  updateEndpoint,
  type SubscribedEndpoint,
} from '#endpoints';
import { formatId, parseId, readConsumerReference } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { listOfConsumer, readConsumerFilter } from '../consumers/consumer-filter.js';
import { etagOf, expectationOf } from '../http/if-match.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { Operation } from '../http/operation.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { circuitStateView } from './circuit-state-view.js';
import { CreateEndpointDto } from './create-endpoint.dto.js';
import { endpointView } from './endpoint-view.js';
import { ListEndpointsDto } from './list-endpoints.dto.js';
import { PatchEndpointDto } from './patch-endpoint.dto.js';

const LIST = 'endpoints';

/** /v1/endpoints */
@Controller('v1/endpoints')
export class EndpointsController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'createEndpoint',
    summary: 'Register an endpoint',
    description: 'The `secret` is in this answer and in no other.',
  })
  @Post()
  @RequireScope('endpoints:write')
  @JsonBody('object')
  async create(
    @CurrentKey() key: KeyHolder,
    @FromCreation() creation: Creation,
    @Body() body: CreateEndpointDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { config, createOnce, egressPolicy, keyring } = this.context;
    const input = {
      consumer:
        body.consumer === undefined || body.consumer === null
          ? null
          : readConsumerReference(body.consumer, 'consumer'),
      url: body.url,
      description: body.description,
      eventTypes: body.event_types,
      filter: body.filter,
      status: body.status,
      secret: body.secret,
      delivery: readDeliveryPolicy(body, config),
    };
    const { made } = await createOnce<{ endpoint: SubscribedEndpoint; secret?: string }>(
      key.tenantId,
      creation,
      {
        create: (tx) => createEndpoint(tx, key.tenantId, input, egressPolicy, keyring),
        idOf: ({ endpoint }) => endpoint.endpoint.id,
        read: async (tx, id) => ({ endpoint: await findEndpoint(tx, key.tenantId, id) }),
      },
    );
    const { endpoint, secret } = made;
    response.setHeader('location', `/v1/endpoints/${formatId('endpoint', endpoint.endpoint.id)}`);
    response.setHeader('etag', etagOf(endpoint.endpoint.version));
    return { ...endpointView(endpoint), secret };
  }

  @Operation({ id: 'listEndpoints', summary: 'List endpoints, newest first' })
  @Get()
  @RequireScope('endpoints:read')
  async list(@CurrentKey() key: KeyHolder, @Query() query: ListEndpointsDto) {
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = { limit: page.limit + 1, afterId: page.after?.[0] ?? null };
    const consumer = readConsumerFilter(query.consumer);
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(key.tenantId, (tx) =>
        listOfConsumer(tx, key.tenantId, consumer, (consumerId) =>
          listEndpoints(tx, key.tenantId, { ...filter, consumerId }),
        ),
      );
      return toPage(list, rows, page.limit, ({ endpoint }) => [endpoint.id], endpointView);
    });
  }

  @Operation({ id: 'readEndpoint', summary: 'Read an endpoint with the state of its circuit' })
  @Get(':id')
  @RequireScope('endpoints:read')
  async read(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Res({ passthrough: true }) response: Response,
  ) {
    const endpointId = parseId('endpoint', id);
    const { found, circuit } = await this.context.inTenant(key.tenantId, async (tx) => ({
      found: await findEndpoint(tx, key.tenantId, endpointId),
      circuit: await readCircuit(tx, key.tenantId, endpointId),
    }));
    response.setHeader('etag', etagOf(found.endpoint.version));
    return { ...endpointView(found), circuit_state: circuitStateView(circuit) };
  }

  @Operation({
    id: 'updateEndpoint',
    summary: 'Change an endpoint',
    description:
      'What is left out stays as it is. Writing `enabled` says that it works again: its circuit closes.',
  })
  @Patch(':id')
  @RequireScope('endpoints:write')
  @JsonBody('object')
  async update(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: PatchEndpointDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const endpointId = parseId('endpoint', id);
    const change = {
      url: body.url,
      description: body.description,
      eventTypes: body.event_types,
      filter: body.filter,
      status: body.status,
      delivery: readDeliveryPolicy(body, this.context.config),
    };
    const options = { policy: this.context.egressPolicy, expects: expectationOf(ifMatch) };
    const changed = await this.context.inTenant(key.tenantId, (tx) =>
      updateEndpoint(tx, key.tenantId, endpointId, change, options),
    );
    this.context.hints.notify([{ tenantId: key.tenantId, endpointId }]);
    response.setHeader('etag', etagOf(changed.endpoint.version));
    return endpointView(changed);
  }

  @Operation({
    id: 'deleteEndpoint',
    summary: 'Delete an endpoint',
    description: 'It gets nothing more; what is still owed becomes `cancelled` shortly after.',
  })
  @Delete(':id')
  @HttpCode(204)
  @RequireScope('endpoints:write')
  async delete(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    const endpointId = parseId('endpoint', id);
    const options = { expects: expectationOf(ifMatch) };
    await this.context.inTenant(key.tenantId, (tx) => deleteEndpoint(tx, key.tenantId, endpointId, options));
    this.context.hints.notify([{ tenantId: key.tenantId, endpointId }]);
  }
}
