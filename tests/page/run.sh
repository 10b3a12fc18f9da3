#!/usr/bin/env bash
# run.sh TEST.mjs: a test of the page in Chromium; 77 (skipped) where browser or packages cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export PATH="$root/.deps/bin:$PATH"
skip() { echo "skipped: $1"; exit 77; }
"$root/scripts/page.sh" --packages || skip "npm could not bring the packages of web/package-lock.json"
case $1 in
  unit) cd "$root/web" && node node_modules/typescript/bin/tsc --noEmit && exec node node_modules/vitest/vitest.mjs run ;;
esac
[ -n "${CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null || skip "no Chromium here ('make browser' brings it)"
exec node --test "$here/$1"
