import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { RunNotFoundError, WorkflowClient, type RunState } from 'nestjs-cyclone';
import { DataSource } from 'typeorm';
import type { RunsQuery } from './runs.query.js';

export interface RunRow {
  id: string;
  workflow: string;
  state: RunState;
  key: string | null;
  createdAt: Date;
  finishedAt: Date | null;
}

/** Looks at runs; changes nothing. */
@Injectable()
export class RunsService {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly workflows: WorkflowClient,
  ) {}

  /** The newest runs first. Each page starts where the one before ended, so it costs the same however far back it is. */
  async page({ state, before, limit }: RunsQuery): Promise<{ runs: RunRow[]; next: string | null }> {
    // The views are public: read them with whatever you like.
    const rows: RunRow[] = await this.dataSource.query(
      `SELECT id, workflow, state, once_key AS key, created_at AS "createdAt", finished_at AS "finishedAt"
       FROM cyclone_v_runs
       WHERE id < coalesce($1::bigint, 9223372036854775807) AND ($2::text IS NULL OR state = $2)
       ORDER BY id DESC LIMIT $3`,
      [before ?? null, state ?? null, limit + 1],
    );
    const runs = rows.slice(0, limit);
    return { runs, next: rows.length > limit ? runs.at(-1)!.id : null };
  }

  /** @throws NotFoundException */
  run(id: string): Promise<object> {
    return orNotFound(() => this.workflows.run(id).info());
  }

  /** @throws NotFoundException */
  steps(id: string): Promise<object[]> {
    return orNotFound(() => this.workflows.run(id).steps());
  }
}

async function orNotFound<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    if (RunNotFoundError.is(error)) throw new NotFoundException(error.message);
    throw error;
  }
}
