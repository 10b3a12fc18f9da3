#!/usr/bin/env bash
# Runs a Python script in the peers' environment: with-peers.sh "tensorflow jax" SCRIPT [ARGUMENT...]. Exit 77 (CTest: skipped) where a module that
# the script needs is not there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${MILLPOND_PEERS:-$root/.venv-peers}/bin/python
if [ ! -x "$python" ]; then
  echo "skipped: this test compares with Keras, TensorFlow and JAX; 'make peers' installs them."
  exit 77
fi
needs=$1
shift
absent=$("$python" -c 'import importlib.util, sys; print(*[name for name in sys.argv[1:] if not importlib.util.find_spec(name)])' $needs)
if [ -n "$absent" ]; then
  echo "skipped: no $absent for $("$python" --version)."
  exit 77
fi
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-3}
exec "$python" "$@"
