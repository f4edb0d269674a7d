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
import { formatId, parseId, withTransaction } from '#runtime';
import {
  createApiKey,
  createTenant,
  deleteTenant,
  findTenant,
  listTenants,
  renameTenant,
  suspendTenant,
} from '#tenants';
import { ApiContext } from '../api-context.js';
import { Operator } from '../auth/require-scope.js';
import { refuseBody } from '../deliveries/refuse-body.js';
import { etagOf, expectationOf } from '../http/if-match.js';
import { JsonBody } from '../http/json-body.interceptor.js';
import { readPage, toPage } from '../http/page.js';
import { keyView } from '../keys/key-view.js';
import { CreateTenantDto } from './create-tenant.dto.js';
import { ListTenantsDto } from './list-tenants.dto.js';
import { owedEndpoints } from './owed-endpoints.js';
import { PatchTenantDto } from './patch-tenant.dto.js';
import { readFirstKey } from './read-first-key.js';
import { tenantView } from './tenant-view.js';

const LIST = 'tenants';
const LIST_DELETING = 'tenants deleting';

/** /v1/tenants, which is the operator's */
@Operator()
@Controller('v1/tenants')
export class TenantsController {
  constructor(private readonly context: ApiContext) {}

  @Post()
  @JsonBody('object')
  async create(@Body() body: CreateTenantDto, @Res({ passthrough: true }) response: Response) {
    const { config, platformPool } = this.context;
    const firstKey = readFirstKey(body.first_key);
    const { tenant, key } = await withTransaction(platformPool, async (tx) => {
      const made = await createTenant(tx, { name: body.name });
      return {
        tenant: made,
        key: firstKey && (await createApiKey(tx, made.id, firstKey, config.keyEnv)),
      };
    });
    this.log('tenant.created', tenant.id);
    response.setHeader('location', `/v1/tenants/${formatId('tenant', tenant.id)}`);
    response.setHeader('etag', etagOf(tenant.version));
    return { ...tenantView(tenant), first_key: key && { ...keyView(key), key: key.key } };
  }

  @Get()
  async list(@Query() query: ListTenantsDto) {
    const deleting = query.deleting === 'true';
    const list = deleting ? LIST_DELETING : LIST;
    const page = readPage<[string]>(list, ['uuid'], query);
    const filter = { deleting, limit: page.limit + 1, afterId: page.after?.[0] ?? null };
    const rows = await listTenants(this.context.platformPool, filter);
    return toPage(list, rows, page.limit, ({ id }) => [id], tenantView);
  }

  @Get(':id')
  async read(@Param('id') id: string, @Res({ passthrough: true }) response: Response) {
    const tenant = await findTenant(this.context.platformPool, parseId('tenant', id));
    response.setHeader('etag', etagOf(tenant.version));
    return tenantView(tenant);
  }

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

  @Post(':id/suspend')
  @HttpCode(200)
  async suspend(@Param('id') id: string, @Req() request: Request) {
    const tenantId = parseId('tenant', id);
    await refuseBody(request);
    const tenant = await suspendTenant(this.context.platformPool, tenantId, { suspended: true });
    this.log('tenant.suspended', tenantId);
    return tenantView(tenant);
  }

  @Post(':id/resume')
  @HttpCode(200)
  async resume(@Param('id') id: string, @Req() request: Request) {
    const { hints, platformPool } = this.context;
    const tenantId = parseId('tenant', id);
    await refuseBody(request);
    const tenant = await suspendTenant(platformPool, tenantId, { suspended: false });
    hints.notify(await owedEndpoints(platformPool, tenantId));
    this.log('tenant.resumed', tenantId);
    return tenantView(tenant);
  }

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
