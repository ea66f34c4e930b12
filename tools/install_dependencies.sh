#!/usr/bin/env bash
# Installs the Debian packages that building and testing need; installs nothing that is there.
#   tools/install_dependencies.sh        compiler, libraries, data sets
#   tools/install_dependencies.sh --ci   also what .ci/run needs: clang, its tools and sanitizers
set -euo pipefail

# ocl-icd-opencl-dev: the CMake package of oneDNN looks for OpenCL, but libdnnl-dev only recommends it.
packages=(
  cmake ninja-build g++ git
  libdnnl-dev ocl-icd-opencl-dev libeigen3-dev libspdlog-dev libfmt-dev nlohmann-json3-dev
  libcli11-dev libjpeg-dev libpng-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  dataset-fashion-mnist fortunes
)
ci_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm-14 libomp-14-dev python3)

case "${1:-}" in
  "") ;;
  --ci) packages+=("${ci_packages[@]}") ;;
  *)
    echo "install_dependencies: unknown argument '$1'; give none or --ci." >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query > /dev/null; then
  cat >&2 <<MESSAGE
install_dependencies: this is not a Debian system, so nothing was installed.
Install what these Debian packages hold, then call cmake as README.md shows: ${packages[*]}
MESSAGE
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${Status}\n' "$package" 2> /dev/null || true)
  [[ $state == *"install ok installed"* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ((EUID == 0)); then
  as_root=(env)
elif command -v sudo > /dev/null; then
  as_root=(sudo)
else
  echo "install_dependencies: neither root nor sudo; as root, run: apt-get install ${missing[*]}" >&2
  exit 1
fi

echo "Installing: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
  "${missing[@]}" < /dev/null
