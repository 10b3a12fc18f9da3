#!/usr/bin/env bash
# Makes dist/millpond-VERSION-py3-none-manylinux_2_34_x86_64.whl, which needs nothing but the C library where it is installed, and the source distribution beside it.
# The wheel is built of what the source distribution holds, in a folder with a space in its name, always anew (ccache makes that quick), and refused when it would not
# run everywhere it says it does (scripts/check_wheel.py).
#   wheel.sh --try   what `make wheel` made, tried: in an environment of every Python 3.9 or newer that is here, and, as root with debootstrap, in a clean Debian 13
#                    without a compiler and with the Pythons of Debian's testing suite. SUITES="trixie forky" chooses, SUITES= is none.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$root/build-wheel
export PATH="$root/.deps/bin:$PATH"
say() { printf 'wheel: %s\n' "$*"; }
fail() {
  printf 'wheel: %s\n' "$*" >&2
  exit 1
}
pip=(-m pip --disable-pip-version-check -q)

make_wheel() {
  local python=${PYTHON:-python3} version source
  python3 -c 'import os, sys; sys.exit(os.confstr("CS_GNU_LIBC_VERSION").split()[1] > "2.36")' ||
    fail "this system's C library is newer than Debian 12's, so its archives may ask for more than the wheel's tag promises; build it on Debian 12."
  rm -rf "$work/source folder" "$work/made"
  mkdir -p "$work/source folder" "$work/made" dist
  [ -x "$work/tools/bin/python" ] || "$python" -m venv "$work/tools"
  "$work/tools/bin/python" "${pip[@]}" install 'scikit-build-core==1.1.1'
  say "1/3 the source distribution"
  "$work/tools/bin/python" -c 'import sys, scikit_build_core.build as b; print(b.build_sdist(sys.argv[1]))' "$work/made" >"$work/sdist.log"
  tar -xzf "$work"/made/millpond-*.tar.gz -C "$work/source folder"
  source=$(echo "$work/source folder"/millpond-*)
  version=${source##*-}
  say "2/3 building version $version (log: build-wheel/wheel.log)"
  # MILLPOND_PAGE=charts: no page of text only. The compiler is the one of `make`, not the one that Python was built with.
  CXX=${CXX:-c++} MILLPOND_PAGE=charts CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} "$work/tools/bin/python" -m pip --disable-pip-version-check wheel -v --no-deps --no-build-isolation \
    --config-settings=cmake.define.MILLPOND_STATIC=ON --config-settings=wheel.tags=py3-none-manylinux_2_34_x86_64 --config-settings=build-dir="$source/build" -w "$work/made" "$source" >"$work/wheel.log" 2>&1 ||
    { grep -E 'error|Error|FAILED|page:' "$work/wheel.log" | head -20 >&2; fail "the build failed; all of it is in build-wheel/wheel.log"; }
  say "3/3 checking"
  scripts/check_wheel.py "$work"/made/millpond-*.whl
  rm -f dist/millpond-*
  mv "$work"/made/millpond-* dist/
  say "dist/$(cd dist && ls millpond-*.whl)"
}

case ${1:-} in
  --try) exec scripts/try-wheel.sh ;;
  '') make_wheel ;;
  *) fail "wheel.sh knows --try, not $1" ;;
esac
