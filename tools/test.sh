#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.  Arguments go to ctest:
#   tools/test.sh                 everything
#   tools/test.sh -R 'Softmax'    the tests whose name matches
# CRUCIBLE_BUILD_DIR chooses the build folder (default: build/ in the source tree).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${CRUCIBLE_BUILD_DIR:-$root/build}
jobs=$(nproc)

"$root/tools/install_dependencies.sh"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCRUCIBLE_BUILD_TESTS=ON \
  -DCRUCIBLE_BUILD_TOOLS=ON
cmake --build "$build" -j "$jobs"

# As many tests at once as there are processors, so each gets one thread.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
exec ctest --test-dir "$build" --output-on-failure -j "$jobs" "$@"
