import { Module } from '@nestjs/common';
import { CycloneAdminModule } from 'nestjs-cyclone/admin';
import { AdminTokenGuard } from './admin-token.guard.js';

/** For the people who run the service: look at orders' runs, retry, pause, cancel, purge. */
@Module({
  imports: [
    CycloneAdminModule.forRoot({
      path: 'admin',
      guards: [AdminTokenGuard],
      // One token for all, so the audit cannot tell them apart.
      getUser: () => 'holder of ADMIN_TOKEN',
    }),
  ],
})
export class AdminModule {}
