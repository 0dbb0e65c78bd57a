/** The checked options, inside of one CycloneAdminModule. */
export const ADMIN_OPTIONS = Symbol('cyclone:admin-options');
/** The metadata of a route's method: its line in the table of routes. */
export const ADMIN_ROUTE = Symbol('cyclone:admin-route');
