import type { AnyRoute } from '../route.js';
import { changeRoutes } from './changes.js';
import { deadLetterRoutes } from './dead-letters.js';
import { overviewRoutes } from './overview.js';
import { runRoutes } from './runs.js';
import { stepRoutes } from './steps.js';

/** Every route, in the order in which a router tries them: `/runs/count` before `/runs/:id`. */
export const ROUTES: readonly AnyRoute[] = [
  ...overviewRoutes(() => ROUTES),
  ...runRoutes,
  ...stepRoutes,
  ...deadLetterRoutes,
  ...changeRoutes,
];
