import {createHash} from "node:crypto";
import {defineConfig, type Plugin} from "vite";
import {viteSingleFile} from "vite-plugin-singlefile";

/** A page that someone sends you may run its own script and nothing else: the policy names that script by its hash. */
function policy(): Plugin {
  return {
    name: "millpond-policy",
    enforce: "post",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
        let html = String(file.source);
        const hashes = [...html.matchAll(/<script(?![^>]*type="application)[^>]*>([\s\S]*?)<\/script>/g)].map(
          found => `'sha256-${createHash("sha256").update(found[1]).digest("base64")}'`,
        );
        const rules = `default-src 'none'; script-src ${hashes.join(" ")}; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
        html = html.replace("millpond:policy", () => rules);
        file.source = html;
      }
    },
  };
}

export default defineConfig({
  plugins: [viteSingleFile({removeViteModuleLoader: true}), policy()],
  build: {target: "es2022", cssCodeSplit: false, assetsInlineLimit: 100_000_000, emptyOutDir: false, reportCompressedSize: false, modulePreload: false},
});
