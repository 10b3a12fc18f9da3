#!/usr/bin/env bash
# Runs the tests of one kind of build: check.sh PRESET JOBS REGEX. Closes with what was skipped, by name, and one line that counts.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
ctest --preset "$1" -j "$2" -R "$3" | tee "$log" || status=$?
# CTest's lines: "12/67 Test  #9: agent_keras .......***Skipped   0.02 sec"
count() { grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$log" || true; }
skipped=$(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .*\*\*\*Skipped.*/\1/p' "$log" | sort | paste -sd ' ')
passed=$(count ' Passed ') left=$(count '\*\*\*Skipped') all=$(count '')
[ -z "$skipped" ] || echo "skipped: $skipped"
echo "$passed passed, $((all - passed - left)) failed, $left skipped"
exit "$status"
