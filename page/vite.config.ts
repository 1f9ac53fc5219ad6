import { defineConfig } from "vite";

// Names carry a hash of their contents: the server lets a browser keep what is below assets/ for ever.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/millstream/dashboard/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: false,
  },
});
