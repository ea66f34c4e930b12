#!/usr/bin/env bash
# From a fresh machine to a trained model: installs what is missing, builds, and trains a ResNet on
# Fashion-MNIST to 88 % test accuracy or better.  Arguments are passed on to `train`.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${CRUCIBLE_BUILD_DIR:-$root/build}
runs=${CRUCIBLE_RUNS_DIR:-$root/runs}

echo "== 1/3 Installing what is missing"
"$root/tools/install_dependencies.sh"

echo "== 2/3 Building (a few minutes the first time)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release > "$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build "$build" -j "$(nproc)" --target train

echo "== 3/3 Training a ResNet on Fashion-MNIST (about three minutes on two cores)"
run=$runs/quickstart-$(date +%Y%m%d-%H%M%S)
"$build/bin/train" --model resnet --dataset fashion-mnist --epochs 3 --target-accuracy 0.88 \
  --output "$run" "$@"
cat <<MESSAGE

The run is in $run
  metrics.jsonl   what was measured along the way, one JSON record a line
  summary.json    the result
Next: $build/bin/train --help, or all tests with $root/tools/test.sh
MESSAGE
