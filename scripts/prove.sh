#!/usr/bin/env bash
# prove.sh [NAME ...]: the proofs that take longer than `make test` has time for, each with its figures and how long it took. Without a name all.
# SEED=1000: where the random programs begin.
set -u
cd "$(dirname "$0")/.."
PARTS="everywhere fixes generator same wheel"

part() {
  case $1 in
    everywhere) tests/everywhere/run.py ;;
    fixes) tests/fixes/run.py ;;
    generator) tests/cases/generator_test.py --measure 20 ;;
    same) tests/same/run.py --programs 300 --from "${SEED:-1000}" ;;
    wheel) scripts/wheel.sh && scripts/wheel.sh --try ;;
    *) echo "prove: no part is called $1; there are: $PARTS" >&2; return 2 ;;
  esac
}

failed=
for name in ${@:-$PARTS}; do
  echo "== $name"
  begin=$SECONDS
  part "$name" || failed="$failed $name"
  echo "== $name: $((SECONDS - begin)) s"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
