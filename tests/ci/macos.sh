#!/usr/bin/env bash
# macOS on arm64: compile the program and its plugin for GPUs with warnings as errors, without optional
# libraries, and link them. Nothing is executed. Needs Debian and root or sudo, which installs headers.
#
#   tests/ci/macos.sh
#
# zig, from PyPI, provides the macOS headers. The headers of jansson, expat, zlib and hwloc are Debian's.
# The program is linked against stubs (.tbd) that list the symbols of Debian's libraries.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=cmake/packages.sh
. cmake/packages.sh

build=$PWD/build/macos
sdk=$build/sdk
export ZIG_GLOBAL_CACHE_DIR=$build/zig ZIG_LOCAL_CACHE_DIR=$build/zig

rfl_install_packages cmake ninja-build pkg-config binutils python3-venv libjansson-dev libexpat1-dev \
  libhwloc-dev zlib1g-dev
rm -rf "$sdk"
mkdir -p "$sdk"/{bin,include,lib/pkgconfig}
[ -x "$build/venv/bin/python" ] || python3 -m venv "$build/venv"
"$build/venv/bin/pip" install --quiet --disable-pip-version-check \
  "$(grep '^ziglang==' packaging/requirements.txt)"
zig=$("$build/venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/zig
tool() { printf '#!/bin/sh\n%s\nexec %s "$@"\n' "${3-}" "$2" >"$sdk/bin/$1"; chmod +x "$sdk/bin/$1"; }
# Without the sanitizer that zig adds, and the C++ library, which it would compile.
tool c_compiler "$zig cc -target aarch64-macos -fno-sanitize=undefined" \
  'for word; do shift; [ "$word" = -bundle ] && word=-dynamiclib; set -- "$@" "$word"; done' # zig has no bundles
tool cxx_compiler "$zig c++ -target aarch64-macos -fno-sanitize=undefined -nostdlib++"
tool ar "$zig ar"
tool ranlib "$zig ranlib"
tool install_name_tool false

# library NAME FILE HEADER...: a list of names for the linker, with headers and a file for pkg-config
library() {
  local name=$1 file header
  file=$(realpath "$(find /usr/lib /lib -name "$2" | head -n 1)")
  {
    printf -- "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\n"
    printf "install-name: '/opt/homebrew/lib/lib%s.dylib'\nexports:\n  - targets: [ arm64-macos ]\n" "$name"
    printf "    symbols: [ %s ]\n...\n" \
      "$(nm -D --defined-only "$file" | awk '$2 == "T" { sub(/@.*/, "", $3); print "_" $3 }' | paste -sd,)"
  } >"$sdk/lib/lib$name.tbd"
  for header in "${@:3}"; do cp -r "$header" "$sdk/include/"; done
  printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s -l%s\nCflags: -I%s\n' "$name" "$name" \
    "$(pkg-config --modversion "$name")" "$sdk/lib" "$name" "$sdk/include" >"$sdk/lib/pkgconfig/$name.pc"
}
library jansson 'libjansson.so.4' /usr/include/jansson*.h
library expat 'libexpat.so.1' /usr/include/expat*.h
library zlib 'libz.so.1' /usr/include/zlib.h /usr/include/zconf.h
library hwloc 'libhwloc.so.15' /usr/include/hwloc.h /usr/include/hwloc /usr/include/*/hwloc

cmake --preset macos
cmake --build --preset macos
