#!/usr/bin/env bash
# Runs a Python script in the peers' environment; exit 77 (CTest: skipped) where that is not there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=${MILLPOND_PEERS:-$root/.venv-peers}/bin/python
if [ ! -x "$python" ]; then
  echo "skipped: this test compares with Keras, TensorFlow and JAX; 'make peers' installs them."
  exit 77
fi
export TF_CPP_MIN_LOG_LEVEL=${TF_CPP_MIN_LOG_LEVEL:-3}
exec "$python" "$@"
