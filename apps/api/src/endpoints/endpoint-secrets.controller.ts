import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { listSecrets, readSecret, revokeSecret, rotateSecret, type ChangedSecret } from '#endpoints';
import { parseId } from '#runtime';
import type { KeyHolder } from '#tenants';
import { ApiContext } from '../api-context.js';
import { CurrentKey, RequireScope } from '../auth/require-scope.js';
import { FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { etagOf, expectationOf } from '../http/if-match.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { Operation } from '../http/operation.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { CreateSecretDto } from './create-secret.dto.js';
import { ListSecretsDto } from './list-secrets.dto.js';
import { secretView } from './secret-view.js';

const LIST = 'endpoint-secrets';

/** /v1/endpoints/:id/secrets; the ETag is that of the endpoint, whose version every change of a secret counts. */
@Controller('v1/endpoints')
export class EndpointSecretsController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'listSecrets',
    summary: 'List the secrets of an endpoint, newest first',
    description: 'When each was made and ends; never what it is.',
  })
  @Get(':id/secrets')
  @RequireScope('endpoints:read')
  async list(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Query() query: ListSecretsDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const endpointId = parseId('endpoint', id);
    const list = { name: LIST, tenantId: key.tenantId };
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = { limit: page.limit + 1, afterId: page.after?.[0] ?? null };
    return settledList(this.context, async () => {
      const { secrets, endpointVersion } = await this.context.inTenant(key.tenantId, (tx) =>
        listSecrets(tx, key.tenantId, endpointId, filter),
      );
      response.setHeader('etag', etagOf(endpointVersion));
      return toPage(list, secrets, page.limit, (secret) => [secret.id], secretView);
    });
  }

  @Operation({
    id: 'createSecret',
    summary: 'Rotate the secret of an endpoint',
    description:
      'Deliveries are signed with the new one and, until the overlap is over, with those before it. The `secret` is in this answer and in no other.',
  })
  @Post(':id/secrets')
  @RequireScope('endpoints:write')
  @JsonBody('object or nothing')
  async create(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @FromCreation() creation: Creation,
    @Body() body: CreateSecretDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const endpointId = parseId('endpoint', id);
    const input = { secret: body.secret, overlapSeconds: body.overlap_seconds };
    const options = { keyring: this.context.keyring, expects: expectationOf(ifMatch) };
    const { made } = await this.context.createOnce<ChangedSecret & { secret?: string }>(
      key.tenantId,
      creation,
      {
        create: (tx) => rotateSecret(tx, key.tenantId, endpointId, input, options),
        idOf: ({ shown }) => shown.id,
        read: (tx, secretId) => readSecret(tx, key.tenantId, { endpointId, secretId }),
      },
    );
    response.setHeader('etag', etagOf(made.endpointVersion));
    return { ...secretView(made.shown), secret: made.secret };
  }

  @Operation({ id: 'revokeSecret', summary: 'Revoke a secret of an endpoint at once' })
  @Delete(':id/secrets/:secretId')
  @HttpCode(204)
  @RequireScope('endpoints:write')
  async revoke(
    @CurrentKey() key: KeyHolder,
    @Param('id') id: string,
    @Param('secretId') secretId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<void> {
    const row = { endpointId: parseId('endpoint', id), secretId: parseId('secret', secretId) };
    const options = { expects: expectationOf(ifMatch) };
    const { endpointVersion } = await this.context.inTenant(key.tenantId, (tx) =>
      revokeSecret(tx, key.tenantId, row, options),
    );
    response.setHeader('etag', etagOf(endpointVersion));
  }
}
