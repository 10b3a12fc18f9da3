#!/usr/bin/env bash
# What takes too long for `make test`, part by part: ONLY=name picks some of them.
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A parts=(
  [same]="tests/same/run.py --programs 300 --from ${SEED:-1000}"
)
ran=0
for name in $(printf '%s\n' "${!parts[@]}" | sort); do
  if [ -n "${ONLY:-}" ] && [[ " ${ONLY//,/ } " != *" $name "* ]]; then continue; fi
  echo "== $name"
  ${parts[$name]}
  ran=$((ran + 1))
done
[ "$ran" -gt 0 ] || { echo "prove: there is no part '${ONLY}'; there are: ${!parts[*]}" >&2; exit 1; }
