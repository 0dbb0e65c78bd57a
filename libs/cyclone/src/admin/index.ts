// The entry point nestjs-cyclone/admin: the JSON API for operators.
export { CycloneAdminModule } from './cyclone-admin.module.js';
export type { AdminRequest, CycloneAdminOptions } from './admin-options.js';
export { PERMISSIONS, type Access, type Permission } from './permissions.js';
export type { Problem } from './problem.js';
