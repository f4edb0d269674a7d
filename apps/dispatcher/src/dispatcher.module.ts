import { Module, type DynamicModule } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { TerminusModule } from '@nestjs/terminus';
import type { Config } from '#runtime';
import { Engine } from './engine.js';
import { HealthController } from './health/health.controller.js';
import { CONFIG } from './tokens.js';
import { UpkeepService } from './upkeep/upkeep.service.js';

/** The delivery process: the engine, its upkeep and its health routes. */
@Module({})
export class DispatcherModule {
  static of(config: Config, engine: Engine): DynamicModule {
    return {
      module: DispatcherModule,
      imports: [ScheduleModule.forRoot(), TerminusModule.forRoot({ logger: false })],
      controllers: [HealthController],
      providers: [
        UpkeepService,
        { provide: CONFIG, useValue: config },
        { provide: Engine, useValue: engine },
      ],
    };
  }
}
