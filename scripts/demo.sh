#!/usr/bin/env bash
# The first thing to look at: a plan that names every byte before the first batch, a run that keeps to it, and why another program grows.
set -euo pipefail
cd "$(dirname "$0")/.."
show() {
  printf '\n$ millpond %s\n' "$*"
  build/bin/millpond "$@"
}
show plan cnn_224 --batch 32
show train cnn_224 --synthetic --epochs 3 --steps-per-epoch 6
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
show watch -o "$run/demo.pond" -- python3 examples/leaky_training.py
