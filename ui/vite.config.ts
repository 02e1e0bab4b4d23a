import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  // Tests mount components in a page; without this they would get Svelte's server half.
  resolve: process.env["VITEST"] ? { conditions: ["browser"] } : {},
  clearScreen: false,
  server: { port: 1420, strictPort: true },
  build: {
    outDir: "dist",
    target: ["es2023", "safari17"],
    // Fonts stay files, so that the shell's content security policy needs no data: addresses.
    assetsInlineLimit: 0,
  },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts"],
  },
});
