import {createHash} from "node:crypto";
import {readFileSync, writeFileSync} from "node:fs";
import {defineConfig, type Plugin} from "vite";
import {viteSingleFile} from "vite-plugin-singlefile";

/** A page that someone sends you may run its own script and nothing else: the policy names that script by its hash. */
function policy(): Plugin {
  return {
    name: "millpond-policy",
    enforce: "post",
    // On disk: only then is everything in one file.
    writeBundle(options) {
      const path = `${options.dir}/index.html`;
      const html = readFileSync(path, "utf8");
      const hashes = [...html.matchAll(/<script(?![^>]*type="application)[^>]*>([\s\S]*?)<\/script>/g)].map(
        found => `'sha256-${createHash("sha256").update(found[1]).digest("base64")}'`,
      );
      const rules = `default-src 'none'; script-src ${hashes.join(" ")}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
      writeFileSync(path, html.replace("millpond:policy", () => rules));
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({removeViteModuleLoader: true}), policy()],
  build: {target: "es2022", cssCodeSplit: false, assetsInlineLimit: 100_000_000, emptyOutDir: false, reportCompressedSize: false, modulePreload: false},
});
