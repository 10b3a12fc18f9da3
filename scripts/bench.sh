#!/usr/bin/env bash
# Each question of bench/ in turn: C++ programs (build/bench), then scripts beside the peers. BENCH=name picks one.
set -euo pipefail
cd "$(dirname "$0")/.."
ran=0
for program in build/bench/* bench/*.py; do
  name=$(basename "${program%.py}")
  [ -x "$program" ] && [ -f "$program" ] || continue # a script that is not executable is a part of another
  if [ -n "${BENCH:-}" ] && [ "$BENCH" != "$name" ]; then continue; fi
  echo "== $name"
  case $program in
    *.py) scripts/with-peers.sh "" "$program" ;;
    *) "$program" ;;
  esac
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "bench: nothing named '${BENCH:-*}' in bench/" >&2; exit 1; }
