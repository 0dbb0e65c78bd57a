import { Controller, Get, Param, Query, UseGuards } from '@nestjs/common';
import { AdminTokenGuard } from './admin-token.guard.js';
import { RunIdParam, RunsQuery } from './runs.query.js';
import { RunsService } from './runs.service.js';

/** For the people who run the service. Read-only. */
@Controller('admin/runs')
@UseGuards(AdminTokenGuard)
export class AdminController {
  constructor(private readonly runs: RunsService) {}

  @Get()
  page(@Query() query: RunsQuery) {
    return this.runs.page(query);
  }

  @Get(':id')
  run(@Param() { id }: RunIdParam) {
    return this.runs.run(id);
  }

  @Get(':id/steps')
  steps(@Param() { id }: RunIdParam) {
    return this.runs.steps(id);
  }
}
