#!/usr/bin/env bash
# Makes .venv-peers: TensorFlow, Keras and JAX at pinned versions, for tests and benchmarks; PyTorch is Debian's own.
# Instant when the stamp matches requirements-peers.txt and the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${MILLPOND_PEERS:-.venv-peers}
python=${PYTHON:-python3}
stamp=$venv/.millpond-stamp
fail() { printf 'peers: %s\n' "$1" >&2; exit 1; }

if [ ! -e /usr/lib/python3/dist-packages/torch ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "peers: installing python3-torch"
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends python3-torch >/dev/null 2>&1 ||
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends python3-torch >/dev/null; }
  else
    echo "peers: no python3-torch here and not root: the tests with PyTorch are skipped"
  fi
fi

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "no $python here; run 'make setup' first."
want="$version $(sha256sum requirements-peers.txt | cut -d' ' -f1)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
  echo "peers: ready in $venv"
  exit 0
fi

echo "peers: 1/3 virtual environment $venv (Python $version)"
if [ ! -f "$stamp" ] || [ "$(cut -d' ' -f1 "$stamp")" != "$version" ]; then rm -rf "$venv"; fi # half made, or of another Python
"$python" -m venv "$venv" || fail "python3 -m venv failed; 'make setup' installs python3-venv."
# A pinned version may have no wheel for a Python that is newer than it. What needs it is left out then, and the tests that need it are skipped.
pip=("$venv/bin/python" -m pip --disable-pip-version-check install --only-binary :all:)
pins=$venv/pins.txt
cp requirements-peers.txt "$pins"
echo "peers: 2/3 installing $(grep -c '==' "$pins") pinned packages and what they need (about 2 GB on disk, some minutes)"
until "${pip[@]}" -r "$pins" 2>"$venv/errors" | sed -u -n 's/^\(Collecting\|Downloading\|Installing\|Successfully\) /  \1 /p'; do
  absent=$(sed -n 's/^ERROR: No matching distribution found for \([A-Za-z0-9_.-]*\).*/\1/p' "$venv/errors" | head -n 1)
  [ -n "$absent" ] && grep -qE "^$absent(=|\[)" "$pins" || fail "pip failed: $(tail -n 1 "$venv/errors")"
  echo "peers: $(grep -E "^$absent(=|\[)" "$pins") has no wheel for Python $version: the tests that need it are skipped"
  sed -i -E "/^$absent(=|\[)/d" "$pins"
done
echo "peers: 3/3 importing them"
for module in tensorflow keras jax optax h5py; do
  grep -qE "^$module(-cpu)?(=|\[)" "$pins" || continue
  TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=jax "$venv/bin/python" -c \
    "import $module; print('  $module', $module.__version__)" 2>/dev/null || fail "$module was installed but does not import."
done
printf '%s\n' "$want" >"$stamp"
echo "peers: ready in $venv"
