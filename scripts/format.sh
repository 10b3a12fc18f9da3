#!/usr/bin/env bash
# clang-format in place, at the version that is pinned for all in requirements-peers.txt; --check only says which files would change.
set -euo pipefail
cd "$(dirname "$0")/.."
format=${MILLPOND_PEERS:-.venv-peers}/bin/clang-format
[ -x "$format" ] || { echo "format: no $format; 'make peers' brings it." >&2; exit 1; }
mapfile -d '' files < <(find src include tests bench examples fuzz -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cu' \) -print0)
if [ "${1:-}" = --check ]; then
  "$format" --dry-run --Werror "${files[@]}"
else
  "$format" -i "${files[@]}"
fi
echo "format: ${#files[@]} files"
