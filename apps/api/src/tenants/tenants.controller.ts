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
  Req,
  Res,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { NIL_UUID } from '#outbox';
import { formatId, parseId } from '#runtime';
import {
  createApiKey,
  createTenant,
  deleteTenant,
  findTenant,
  listTenants,
  renameTenant,
  suspendTenant,
  type CreatedApiKey,
  type Tenant,
} from '#tenants';
import { ApiContext } from '../api-context.js';
import { Operator } from '../auth/require-scope.js';
import { CreatesNothing, FromCreation } from '../creation/creation.js';
import type { Creation } from '../creation/creation.js';
import { refuseBody } from '../deliveries/refuse-body.js';
import { etagOf, expectationOf } from '../http/if-match.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { Operation } from '../http/operation.js';
import { readPage, toPage } from '../http/page.js';
import { settledList } from '../http/settled-list.js';
import { keyView } from '../keys/key-view.js';
import { CreateTenantDto } from './create-tenant.dto.js';
import { ListTenantsDto } from './list-tenants.dto.js';
import { owedEndpoints } from './owed-endpoints.js';
import { PatchTenantDto } from './patch-tenant.dto.js';
import { readFirstKey } from './read-first-key.js';
import { tenantView } from './tenant-view.js';

const LIST = 'tenants';
const LIST_DELETING = 'tenants deleting';

interface MadeTenant {
  readonly tenant: Tenant;
  readonly key: CreatedApiKey | null;
}

/** /v1/tenants, which is the operator's */
@Operator()
@Controller('v1/tenants')
export class TenantsController {
  constructor(private readonly context: ApiContext) {}

  @Operation({
    id: 'createTenant',
    summary: 'Make a tenant, with its first API key where one is asked for',
    description: 'The `key` of `first_key` is in this answer and in no other.',
  })
  @Post()
  @JsonBody('object')
  async create(
    @FromCreation() creation: Creation,
    @Body() body: CreateTenantDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { config, createPlatformOnce } = this.context;
    const firstKey = readFirstKey(body.first_key);
    const { made, repeated } = await createPlatformOnce<MadeTenant>(NIL_UUID, creation, {
      async create(tx) {
        const tenant = await createTenant(tx, { name: body.name });
        return { tenant, key: firstKey && (await createApiKey(tx, tenant.id, firstKey, config.keyEnv)) };
      },
      idOf: ({ tenant }) => tenant.id,
      // The first key was shown once, to whoever made it.
      read: async (tx, id) => ({ tenant: await findTenant(tx, id), key: null }),
    });
    const { tenant, key } = made;
    if (!repeated) this.log('tenant.created', tenant.id);
    response.setHeader('location', `/v1/tenants/${formatId('tenant', tenant.id)}`);
    response.setHeader('etag', etagOf(tenant.version));
    return { ...tenantView(tenant), first_key: key && { ...keyView(key), key: key.key } };
  }

  @Operation({ id: 'listTenants', summary: 'List tenants, newest first' })
  @Get()
  async list(@Query() query: ListTenantsDto) {
    const deleting = query.deleting === 'true';
    // The operator's lists are no tenant's.
    const list = { name: deleting ? LIST_DELETING : LIST, tenantId: NIL_UUID };
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = { deleting, limit: page.limit + 1, afterId: page.after?.[0] ?? null };
    return settledList(this.context, async () => {
      const rows = await listTenants(this.context.platformPool, filter);
      return toPage(list, rows, page.limit, ({ id }) => [id], tenantView);
    });
  }

  @Operation({ id: 'readTenant', summary: 'Read a tenant' })
  @Get(':id')
  async read(@Param('id') id: string, @Res({ passthrough: true }) response: Response) {
    const tenant = await findTenant(this.context.platformPool, parseId('tenant', id));
    response.setHeader('etag', etagOf(tenant.version));
    return tenantView(tenant);
  }

  @Operation({ id: 'renameTenant', summary: 'Give a tenant another name' })
  @Patch(':id')
  @JsonBody('object')
  async rename(
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: PatchTenantDto,
    @Res({ passthrough: true }) response: Response,
  ) {
    const { platformPool } = this.context;
    const tenantId = parseId('tenant', id);
    const tenant = await renameTenant(platformPool, tenantId, body.name, expectationOf(ifMatch));
    response.setHeader('etag', etagOf(tenant.version));
    return tenantView(tenant);
  }

  @Operation({
    id: 'suspendTenant',
    summary: 'Suspend a tenant',
    description: 'Its keys are refused, and what it is owed waits.',
  })
  @Post(':id/suspend')
  @HttpCode(200)
  @CreatesNothing('suspending twice is suspending once')
  async suspend(@Param('id') id: string, @Req() request: Request) {
    const tenantId = parseId('tenant', id);
    await refuseBody(request);
    const tenant = await suspendTenant(this.context.platformPool, tenantId, { suspended: true });
    this.log('tenant.suspended', tenantId);
    return tenantView(tenant);
  }

  @Operation({
    id: 'resumeTenant',
    summary: 'Let a suspended tenant go on',
    description: 'Its keys are good again, and what waited is sent.',
  })
  @Post(':id/resume')
  @HttpCode(200)
  @CreatesNothing('resuming twice is resuming once')
  async resume(@Param('id') id: string, @Req() request: Request) {
    const { hints, platformPool } = this.context;
    const tenantId = parseId('tenant', id);
    await refuseBody(request);
    const tenant = await suspendTenant(platformPool, tenantId, { suspended: false });
    hints.notify(await owedEndpoints(platformPool, tenantId));
    this.log('tenant.resumed', tenantId);
    return tenantView(tenant);
  }

  @Operation({
    id: 'deleteTenant',
    summary: 'Delete a tenant with all that it has',
    description: 'It is gone for all requests at once; its rows are taken away after that.',
  })
  @Delete(':id')
  @HttpCode(204)
  async delete(@Param('id') id: string): Promise<void> {
    const tenantId = parseId('tenant', id);
    await deleteTenant(this.context.platformPool, tenantId);
    this.log('tenant.deleted', tenantId);
  }

  private log(event: string, tenantId: string): void {
    this.context.logger.info({ event, tenant_id: formatId('tenant', tenantId) });
  }
}
