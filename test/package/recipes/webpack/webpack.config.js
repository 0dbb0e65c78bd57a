/** What Nest, class-transformer and pg load only where it is installed. */
const NOT_INSTALLED =
  /^(@nestjs\/(microservices|websockets|platform-express)|class-transformer\/storage|pg-native)(\/|$)/;

// Without this line `nest build --webpack` leaves all packages outside the bundle.
module.exports = (options) => ({ ...options, externals: [NOT_INSTALLED] });
