import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Vite's own compiler writes no metadata for decorators.
  plugins: [swc.vite({ module: { type: 'es6' } })],
  test: { globals: true, include: ['src/**/*.spec.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
});
