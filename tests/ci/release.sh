#!/usr/bin/env bash
# Make all packages of a release in build/package/dist, and try each in a clean Debian: the wheel, the archive, the
# Debian packages, the container image, and their checksums. Takes hours; the options are those of packaging/build.sh.
#
#   tests/ci/release.sh [--torch "VERSION..."] [--cuda "VERSION..."]
set -euo pipefail
cd "$(dirname "$0")/../.."

dist=$PWD/build/package/dist
rm -rf "$dist" build/package/done/torch-* # build.sh keeps engines, also if their source has changed
packaging/build.sh "$@" "$dist"
packaging/deb.sh "$dist"
packaging/image.sh "$dist"
packaging/check.sh "$dist"
(cd "$dist" && sha256sum roofline* >SHA256SUMS && sha256sum --check --quiet SHA256SUMS && cat SHA256SUMS)
