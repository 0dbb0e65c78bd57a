// The second entry point, by its name.
import { CycloneAdminModule } from 'nestjs-cyclone/admin';

export const admin: typeof CycloneAdminModule = CycloneAdminModule;
