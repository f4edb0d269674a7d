import { Module, type DynamicModule } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, APP_INTERCEPTOR, APP_PIPE } from '@nestjs/core';
import { TerminusModule } from '@nestjs/terminus';
import { ApiContext } from './api-context.js';
import { KeyGuard } from './auth/key.guard.js';
import { ConsumersController } from './consumers/consumers.controller.js';
import { DeadLettersController } from './dead-letters/dead-letters.controller.js';
import { DeliveriesController } from './deliveries/deliveries.controller.js';
import { DocsController } from './docs/docs.controller.js';
import { EndpointSecretsController } from './endpoints/endpoint-secrets.controller.js';
import { EndpointsController } from './endpoints/endpoints.controller.js';
import { EventDeliveriesController } from './events/event-deliveries.controller.js';
import { MatchController } from './events/match.controller.js';
import { EventsController } from './events/events.controller.js';
import { HealthController } from './health/health.controller.js';
import { DtoPipe } from './http/dto.pipe.js';
import { JsonBodyInterceptor } from './http/json-body.interceptor.js';
import { KeysController } from './keys/keys.controller.js';
import { MetricsController } from './metrics/metrics.controller.js';
import { ProblemFilter } from './problem.filter.js';
import { TenantsController } from './tenants/tenants.controller.js';

/** The api, around a context that main makes and closes. Guard, then body, then DTO, then handler; errors at the end. */
@Module({})
export class AppModule {
  static around(context: ApiContext): DynamicModule {
    return {
      module: AppModule,
      imports: [TerminusModule.forRoot({ logger: false })],
      controllers: [
        EventsController,
        MatchController,
        EventDeliveriesController,
        DeliveriesController,
        DeadLettersController,
        EndpointsController,
        EndpointSecretsController,
        KeysController,
        // Without an operator's key there are no such routes, to nobody.
        ...(context.config.operatorKeyDigests.length > 0 ? [TenantsController] : []),
        ConsumersController,
        HealthController,
        DocsController,
        MetricsController,
      ],
      providers: [
        { provide: ApiContext, useValue: context },
        { provide: APP_GUARD, useClass: KeyGuard },
        { provide: APP_INTERCEPTOR, useClass: JsonBodyInterceptor },
        { provide: APP_PIPE, useClass: DtoPipe },
        { provide: APP_FILTER, useClass: ProblemFilter },
      ],
    };
  }
}
