#!/usr/bin/env bash
# Runs the tests of one kind of build: check.sh PRESET JOBS REGEX. Closes with what was skipped, as a whole or inside a test that passed, or needed a second try, by name, and one
# line that counts.
# A test that fails is run once more: many watch a live program on a machine that others use too. A defect fails twice.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
export MILLPOND_SKIPPED=$(mktemp) # tests/support/run_test.py writes there
trap 'rm -f "$log" "$MILLPOND_SKIPPED"' EXIT
status=0
ctest --preset "$1" -j "$2" -R "$3" --repeat until-pass:2 | tee "$log" || status=$?
inside=$(sort -u "$MILLPOND_SKIPPED") # of a test that ran twice once
[ -z "$inside" ] || sed 's/^/skipped inside: /' <<<"$inside"
# CTest's lines: "12/67 Test  #9: agent_keras .......***Skipped   0.02 sec"; a second try has no "12/67".
awk -v inside="$([ -z "$inside" ] && echo 0 || wc -l <<<"$inside")" '
  match($0, /Test +#[0-9]+: [^ ]+ /) && ($0 ~ /   Passed /  || $0 ~ /\*\*\*/) {
    split(substr($0, RSTART, RLENGTH), word, ": "); name = word[2]; sub(/ $/, "", name)
    tries[name]++; last[name] = $0 ~ /   Passed / ? "passed" : $0 ~ /\*\*\*Skipped/ ? "skipped" : "failed"
  }
  END {
    for (name in last) {
      count[last[name]]++
      if (last[name] == "skipped") skipped = skipped " " name
      if (last[name] == "passed" && tries[name] > 1) again = again " " name
    }
    if (skipped) print "skipped:" skipped
    if (again) print "passed only when run again:" again
    print count["passed"] + 0 " passed, " count["failed"] + 0 " failed, " count["skipped"] + 0 " skipped, " inside " skipped inside tests that ran"
  }' "$log"
exit "$status"
