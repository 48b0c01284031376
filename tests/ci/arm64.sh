#!/usr/bin/env bash
# Arm64 Linux: cross-build the program, run a subset of the unit tests under qemu-user, execute and
# disassemble every loop of the ceilings, and count with perf on the PMU that QEMU emulates. Needs
# Debian and root or sudo, which installs the compiler and QEMU. The libraries of the target are unpacked
# below build/arm64/root, so that the system keeps its own.
#
#   tests/ci/arm64.sh [--torch]
#
# --torch also builds the torch engine, with Debian's libtorch for arm64, and compares the training of a
# network with PyTorch's reference values.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=cmake/packages.sh
. cmake/packages.sh

build=$PWD/build/arm64
root=$build/root
torch=OFF
needs=(libjansson-dev libexpat1-dev zlib1g-dev libhwloc-dev libjpeg62-turbo-dev libcmocka-dev)
if [ "${1-}" = --torch ]; then
  torch=ON
  needs+=(libtorch-dev libopenblas0-pthread)
fi

rfl_install_packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user \
  qemu-system-arm cmake ninja-build pkg-config

# Packages of arm64 with all that they depend on, and a kernel: apt's lists, state and archives are not
# the system's.
unpack() {
  local apt=$build/apt deb kernel
  local options=(-qq -o APT::Architecture=arm64 -o "APT::Architectures::=arm64" -o "Dir::State=$apt"
    -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" -o Debug::NoLocking=1)
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$root"
  : >"$apt/status"
  apt-get "${options[@]}" update
  apt-get "${options[@]}" install -y --download-only --no-install-recommends "$@" >/dev/null
  for deb in "$apt"/archives/*.deb; do dpkg -x "$deb" "$root"; done
  kernel=$(apt-cache "${options[@]}" depends linux-image-arm64 | sed -n 's/^ *Depends: //p')
  (cd "$apt" && apt-get "${options[@]}" download "$kernel")
  dpkg-deb --fsys-tarfile "$apt/$kernel"_*.deb | tar -x -C "$root" --wildcards './boot/vmlinuz-*'
}
[ "$(cat "$root/complete" 2>/dev/null)" = "${needs[*]}" ] || {
  unpack "${needs[@]}"
  echo "${needs[*]}" >"$root/complete"
}

cmake --preset arm64 -DRFL_TORCH=$torch
cmake --build --preset arm64
rm -f "$build/tests.xml"
# The preset leaves out what takes long and does not depend on the processor, and test_base_launch: QEMU
# does not know PR_SET_CHILD_SUBREAPER.
ctest --preset arm64 -j2 --output-junit "$build/tests.xml"
tests/ci/skipped.py "$build/tests.xml"

# No loop may have been left out: "max" has all instructions. A Cortex-A53 has no fp16, dot products or
# bf16, and the loops that need them are reported as such, not executed.
loops() { qemu-aarch64 -L "$root" -cpu "$1" "$build/tests/test_peaks" kernels 2>&1; }
if loops max | grep '^cannot run'; then exit 1; fi
loops cortex-a53 | grep "^cannot run: kernel 'bf16_mmla': needs bf16"

RFL_ARM64_KERNEL=$(ls "$root"/boot/vmlinuz-*) tests/pmu/qemu_pmu.sh . "$build"

[ $torch = ON ] || exit 0
cmake --build --preset arm64 --target rfl_plugin_torch
qemu-aarch64 -L "$root" -cpu max -E LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu/openblas-pthread \
  "$build/bin/roofline" verify tests/data/golden/train_cifar_cnn.json --engine torch
