import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/**
 * KaTeX names each of its fonts in three formats; every webview this runs in reads the smallest. Bold
 * Fraktur, bold or slanted sans serif, and text that is both bold and slanted, which hardly a formula
 * has, are made from the other fonts.
 */
const smallestFonts: Plugin = {
  name: "smallest-fonts",
  enforce: "pre",
  transform: {
    filter: { id: /katex\.min\.css/ },
    handler: (css) =>
      css
        .replace(/,url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)/g, "")
        .replace(
          /@font-face\{[^}]*(?:Fraktur-Bold|SansSerif-Italic|SansSerif-Bold|Main-BoldItalic)[^}]*\}/g,
          "",
        ),
  },
};

/** Accented letters of ancient Greek are left to the system's fonts: the page is to stay below a megabyte. */
const withoutAncientGreek: Plugin = {
  name: "without-ancient-greek",
  enforce: "pre",
  transform: {
    filter: { id: /inter\/wght\.css/ },
    handler: (css) => css.replace(/\/\* inter-greek-ext[^}]*\}/, ""),
  },
};

export default defineConfig({
  plugins: [svelte(), smallestFonts, withoutAncientGreek],
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
  worker: { format: "es" },
  test: {
    environment: "jsdom",
    setupFiles: ["src/setup.ts"],
    include: ["src/**/*.test.ts"],
    // By default one core is left for watching.
    maxWorkers: "100%",
  },
});
