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
import { formatId, parseId } from '#runtime';
import {
  assertMayGive,
  createApiKey,
  findApiKey,
  listApiKeys,
  OVERLAP_SECONDS_DEFAULT,
  readScopes,
  renameApiKey,
  revokeOwnApiKey,
  rotateApiKey,
  type ApiKey,
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
import { CreateKeyDto } from './create-key.dto.js';
import { keyView } from './key-view.js';
import { ListKeysDto } from './list-keys.dto.js';
import { PatchKeyDto } from './patch-key.dto.js';
import { readExpiry } from './read-expiry.js';
import { RotateKeyDto } from './rotate-key.dto.js';

const LIST = 'keys';

/** A key as an answer shows it: with its text once. */
type ShownKey = ApiKey & { readonly key?: string };

/** /v1/keys */
@Controller('v1/keys')
export class KeysController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'createKey',
    summary: 'Make an API key',
    description: 'With scopes that the asking key has. The `key` is in this answer and in no other.',
  })
  @Post()
  @RequireScope('keys')
  @JsonBody('object')
  async create(
    @CurrentKey() by: KeyHolder,
    @FromCreation() creation: Creation,
    @Body() body: CreateKeyDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { config, createOnce } = this.context;
    const scopes = readScopes(body.scopes);
    assertMayGive(by.scopes, scopes);
    const input = { name: body.name, scopes, expiresAt: readExpiry(body.expires_at) };
    const { made, repeated } = await createOnce<ShownKey>(by.tenantId, creation, {
      create: (tx) => createApiKey(tx, by.tenantId, input, config.keyEnv),
      idOf: ({ id }) => id,
      read: (tx, id) => findApiKey(tx, by.tenantId, id),
    });
    if (!repeated) this.log('key.created', by, made.id);
    response.setHeader('location', `/v1/keys/${formatId('api_key', made.id)}`);
    response.setHeader('etag', etagOf(made.version));
    return { ...keyView(made), key: made.key };
  }

  @Operation({ id: 'listKeys', summary: 'List API keys, newest first' })
  @Get()
  @RequireScope('keys')
  async list(@CurrentKey() by: KeyHolder, @Query() query: ListKeysDto) {
    const list = { name: LIST, tenantId: by.tenantId };
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = { limit: page.limit + 1, afterId: page.after?.[0] ?? null };
    return settledList(this.context, async () => {
      const rows = await this.context.inTenant(by.tenantId, (tx) => listApiKeys(tx, by.tenantId, filter));
      return toPage(list, rows, page.limit, ({ id }) => [id], keyView);
    });
  }

  @Operation({ id: 'readKey', summary: 'Read an API key' })
  @Get(':id')
  @RequireScope('keys')
  async read(
    @CurrentKey() by: KeyHolder,
    @Param('id') id: string,
    @Res({ passthrough: true }) response: Response,
  ) {
    const keyId = parseId('api_key', id);
    const key = await this.context.inTenant(by.tenantId, (tx) => findApiKey(tx, by.tenantId, keyId));
    response.setHeader('etag', etagOf(key.version));
    return keyView(key);
  }

  @Operation({ id: 'renameKey', summary: 'Give an API key another name' })
  @Patch(':id')
  @RequireScope('keys')
  @JsonBody('object')
  async rename(
    @CurrentKey() by: KeyHolder,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: PatchKeyDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const change = { id: parseId('api_key', id), name: body.name };
    const key = await this.context.inTenant(by.tenantId, (tx) =>
      renameApiKey(tx, by.tenantId, change, expectationOf(ifMatch)),
    );
    response.setHeader('etag', etagOf(key.version));
    return keyView(key);
  }

  @Operation({
    id: 'rotateKey',
    summary: 'Replace an API key',
    description:
      'Makes one with its name and scopes; the old one ends once the overlap is over. The `key` is in this answer and in no other.',
  })
  @Post(':id/rotate')
  @RequireScope('keys')
  @JsonBody('object or nothing')
  async rotate(
    @CurrentKey() by: KeyHolder,
    @Param('id') id: string,
    @FromCreation() creation: Creation,
    @Body() body: RotateKeyDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { config, createOnce } = this.context;
    const rotation = {
      keyId: parseId('api_key', id),
      overlapSeconds: body.overlap_seconds ?? OVERLAP_SECONDS_DEFAULT,
      held: by.scopes,
    };
    const created = await createOnce<{ made: ShownKey; replaced: ApiKey }>(by.tenantId, creation, {
      create: (tx) => rotateApiKey(tx, by.tenantId, rotation, config.keyEnv),
      idOf: ({ made }) => made.id,
      read: async (tx, newId) => ({
        made: await findApiKey(tx, by.tenantId, newId),
        replaced: await findApiKey(tx, by.tenantId, rotation.keyId),
      }),
    });
    const { made, replaced } = created.made;
    if (!created.repeated) this.log('key.rotated', by, made.id);
    response.setHeader('location', `/v1/keys/${formatId('api_key', made.id)}`);
    response.setHeader('etag', etagOf(made.version));
    return { ...keyView(made), key: made.key, replaces: keyView(replaced) };
  }

  @Operation({ id: 'revokeKey', summary: 'Revoke an API key at once' })
  @Delete(':id')
  @HttpCode(204)
  @RequireScope('keys')
  async revoke(@CurrentKey() by: KeyHolder, @Param('id') id: string): Promise<void> {
    const keyId = parseId('api_key', id);
    await this.context.inTenant(by.tenantId, (tx) => revokeOwnApiKey(tx, by.tenantId, keyId));
    this.log('key.revoked', by, keyId);
  }

  private log(event: string, by: KeyHolder, keyId: string): void {
    this.context.logger.info({
      event,
      tenant_id: formatId('tenant', by.tenantId),
      api_key_id: formatId('api_key', by.keyId),
      subject_id: formatId('api_key', keyId),
    });
  }
}
