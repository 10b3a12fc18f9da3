#!/usr/bin/env bash
# prove.sh [NAME ...]: the proofs that take longer than `make test` has time for, each with its figures and how long it took. Without a name all.
# SEED=1000: where the random programs begin.
set -u
cd "$(dirname "$0")/.."
PARTS="everywhere fixes generator pip same wheel"

# The README's `pip install .`, as a user has it: a copy of what git knows of the tree in a folder with spaces, an environment of its own, the build isolated. Then all that an installed
# package must do.
by_pip() (
  set -e
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  copy="$scratch/a copy of the tree" env="$scratch/an environment"
  mkdir "$copy"
  git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' name; do [ ! -e "$name" ] || printf '%s\0' "$name"; done | xargs -0 cp --parents -t "$copy"
  python3 -m venv "$env"
  (cd "$copy" && "$env/bin/python" -m pip install --disable-pip-version-check -q . pytest)
  MILLPOND_ENV=$env MILLPOND_SOURCE_DIR=$PWD python3 tests/support/run_test.py tests/install/package_test.py
)

part() {
  case $1 in
    everywhere) tests/everywhere/run.py ;;
    fixes) tests/fixes/run.py ;;
    generator) tests/cases/generator_test.py --measure 20 ;;
    pip) by_pip ;;
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
