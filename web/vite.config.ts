/** Builds the page into the package. Nothing is fetched from elsewhere, neither here nor by the page. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { defineConfig, type Plugin } from "vite";

const HERE = import.meta.dirname;
/** Where `arcfleet serve` listens while the page is worked on. */
const SERVER = "http://127.0.0.1:8321";
/** Parts of others in the bundle, whose licences go with it. */
const PARTS = ["leaflet"];

/** Files that decide what the bundle is. */
function sources(): string[] {
  const files = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"];
  for (const name of readdirSync(join(HERE, "src"), { recursive: true, encoding: "utf8" })) {
    if (statSync(join(HERE, "src", name)).isFile()) files.push(relative(HERE, join(HERE, "src", name)));
  }
  return files.sort();
}

/** The hash that a test compares: a changed source asks for a new bundle. */
function sourceHash(): string {
  const hash = createHash("sha256");
  for (const name of sources()) {
    hash.update(`${name}\0`);
    hash.update(readFileSync(join(HERE, name)));
  }
  return hash.digest("hex");
}

function record(): Plugin {
  return {
    name: "record",
    generateBundle() {
      const licences = PARTS.map((name) => {
        const { version } = JSON.parse(
          readFileSync(join(HERE, "node_modules", name, "package.json"), "utf8"),
        ) as { version: string };
        return `${name} ${version}\n\n${readFileSync(join(HERE, "node_modules", name, "LICENSE"), "utf8")}`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: licences.join("\n\n") });
      this.emitFile({ type: "asset", fileName: "sources.sha256", source: `${sourceHash()}\n` });
    },
  };
}

export default defineConfig({
  base: "/",
  build: {
    outDir: "../src/arcfleet/serve/page",
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    target: "es2022",
  },
  plugins: [record()],
  server: {
    // As from the page that the server itself sends: it refuses changes from other origins.
    proxy: {
      "/v1": { target: SERVER, changeOrigin: true, headers: { origin: SERVER } },
    },
  },
});
