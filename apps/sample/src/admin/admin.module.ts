import { Module } from '@nestjs/common';
import { AdminController } from './admin.controller.js';
import { RunsService } from './runs.service.js';

@Module({ controllers: [AdminController], providers: [RunsService] })
export class AdminModule {}
