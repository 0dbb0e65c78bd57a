import { Type } from 'class-transformer';
import { IsIn, IsInt, IsOptional, Matches, Max, Min } from 'class-validator';
import { RUN_STATES, type RunState } from 'nestjs-cyclone';

/** A run id is a bigint of the database, so it stays text on the whole way. */
const RUN_ID = /^\d{1,19}$/;

export class RunIdParam {
  @Matches(RUN_ID, { message: 'a run id is a whole number' })
  id!: string;
}

export class RunsQuery {
  @IsOptional()
  @IsIn(RUN_STATES)
  state?: RunState;

  /** The next page begins below this run: `next` of the page before. */
  @IsOptional()
  @Matches(RUN_ID, { message: 'before must be a run id' })
  before?: string;

  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(100)
  limit = 20;
}
