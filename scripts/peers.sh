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
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-torch >/dev/null 2>&1 ||
      { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-torch >/dev/null; }
  else
    echo "peers: no python3-torch here and not root: the tests with PyTorch are skipped"
  fi
fi

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || fail "no $python here; run 'make setup' first."
case $version in
  3.11 | 3.12) ;;
  *) fail "the pinned peers have wheels for Python 3.11 and 3.12, this is $version; set PYTHON=python3.11 or python3.12." ;;
esac
want="$version $(sha256sum requirements-peers.txt | cut -d' ' -f1)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
  echo "peers: ready in $venv"
  exit 0
fi

echo "peers: 1/3 virtual environment $venv (Python $version)"
if [ ! -f "$stamp" ] || [ "$(cut -d' ' -f1 "$stamp")" != "$version" ]; then rm -rf "$venv"; fi # half made, or of another Python
"$python" -m venv "$venv" || fail "python3 -m venv failed; 'make setup' installs python3-venv."
echo "peers: 2/3 installing $(grep -c '==' requirements-peers.txt) pinned packages and what they need (about 2 GB on disk, some minutes)"
"$venv/bin/python" -m pip install --disable-pip-version-check --only-binary :all: -r requirements-peers.txt \
  | sed -u -n 's/^\(Collecting\|Downloading\|Installing\|Successfully\) /  \1 /p'
echo "peers: 3/3 importing them"
for module in tensorflow keras jax optax h5py; do
  TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=jax "$venv/bin/python" -c \
    "import $module; print('  $module', $module.__version__)" 2>/dev/null || fail "$module was installed but does not import."
done
printf '%s\n' "$want" >"$stamp"
echo "peers: ready in $venv"
