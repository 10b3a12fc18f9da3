#!/usr/bin/env bash
# clang-format in place; --check only says which files would change.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || { echo "format: clang-format is not here; install the package clang-format." >&2; exit 1; }
mapfile -d '' files < <(find src include tests bench examples python -type f \( -name '*.cc' -o -name '*.h' -o -name '*.cu' \) -print0 2>/dev/null)
[ "${#files[@]}" -gt 0 ] || { echo "format: no sources"; exit 0; }
if [ "${1:-}" = --check ]; then
  clang-format --dry-run --Werror "${files[@]}"
else
  clang-format -i "${files[@]}"
fi
echo "format: ${#files[@]} files"
