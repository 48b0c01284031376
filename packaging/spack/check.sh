#!/usr/bin/env bash
# Build and install the committed state of main with Spack, from Debian's libraries (cmake/packages.sh), and run the
# main job. Needs the directory of Spack 0.23, and a Python with clingo in SPACK_PYTHON.
#
#   check.sh SPACK [SPEC]         SPEC: default roofline
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
spack=$(realpath "$1")/bin/spack spec=${2:-roofline}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SPACK_DISABLE_LOCAL_CONFIG=1

external() { # PACKAGE DEBIAN [VARIANTS]
  local version
  version=$(dpkg-query -W -f='${Version}' "$2" | sed 's/^[0-9]*://; s/[-+~].*//')
  printf '  %s: {buildable: false, externals: [{spec: "%s@%s%s", prefix: /usr}]}\n' "$1" "$1" "$version" "${3:-}"
}
{
  echo packages:
  external cairo libcairo2-dev +ft+pdf+png+fc+gobject
  external cmake cmake
  external expat libexpat1-dev
  external gnuplot gnuplot-nox
  external hwloc libhwloc-dev
  external jansson libjansson-dev
  external libjpeg-turbo libjpeg62-turbo-dev
  external libpng libpng-dev
  external ninja ninja-build
  external onednn libdnnl-dev
  external pango libpango1.0-dev
  external pkgconf pkgconf
  external python python3-minimal
  external zlib zlib1g-dev
  echo '  all: {providers: {pkgconfig: [pkgconf], zlib-api: [zlib]}}'
} >"$tmp/packages.yaml"
"$spack" -C "$tmp" compiler find >/dev/null
"$spack" -C "$tmp" repo add "$here" 2>/dev/null || :
"$spack" -C "$tmp" install "$spec"
prefix=$("$spack" -C "$tmp" location -i "$spec")
cd "$tmp"
"$prefix/bin/roofline" doctor
"$prefix/bin/roofline" peaks measure --quick
"$prefix/bin/roofline" run --model cifar_cnn --synthetic --batch-size 16 --iters 5
"$prefix/bin/roofline" points
"$prefix/bin/roofline" plot
