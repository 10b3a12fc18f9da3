#!/usr/bin/env bash
# Builds the report page of web/ into one file: page.sh OUT. Part of the build, beside the compilers; about 10 s the first time, 1 s after that.
# Where Node or its packages cannot be had the build goes on with a page that has the answer as text and no charts; the next build tries again.
# With MILLPOND_PAGE=charts in the environment it fails instead.
#   page.sh --packages   also those for tests (TypeScript, Vitest, Playwright, axe), without building
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
export PATH="$here/.deps/bin:$PATH"
web=$here/web
out=${1:?page.sh OUT}

say() { printf 'page: %s\n' "$*" >&2; }

node_is_new_enough() {
  node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}

# packages omit|include: what package-lock.json names, from the registry npm is configured for.
packages() {
  local want stamp=$web/node_modules/.millpond-stamp
  want="$(sha256sum "$web/package-lock.json" | cut -d' ' -f1) all"
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && return
  [ "$1" = include ] || want="${want% all} build"
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && return
  (cd "$web" && npm ci --"$1"=dev --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null) || return
  printf '%s\n' "$want" >"$stamp"
}

text_only() {
  if [ "${MILLPOND_PAGE:-}" = charts ]; then # for a program that others will have
    say "$1, and a page of text only is not wanted"
    exit 1
  fi
  say "$1: building with the page that has text only"
  mkdir -p "$(dirname "$out")"
  cat >"$out" <<'HTML'
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>millpond:title</title><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><style>body{font:15px/1.5 ui-monospace,monospace;max-width:70rem;margin:2rem auto;padding:0 1rem}pre{white-space:pre-wrap}</style></head>
<body><!-- millpond:text-only --><pre><!--millpond:text--></pre><script id="data" type="application/zlib+base64"><!--millpond:data--></script></body></html>
HTML
  touch -d '2000-01-01' "$out" # so that the next build tries again
  exit 0
}

node_is_new_enough || text_only "no Node 20.19 or newer here ('make setup' brings one)"
mkdir -p "$web/node_modules"
exec 9>"$web/node_modules/.millpond-lock" # builds of several presets share the packages
flock 9
if [ "$out" = --packages ]; then
  packages include
  exit
fi
packages omit || text_only "npm could not bring the packages of web/package-lock.json"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$web" && node node_modules/vite/bin/vite.js build --logLevel warn --outDir "$work" --emptyOutDir) >&2
mkdir -p "$(dirname "$out")"
mv "$work/index.html" "$out"
