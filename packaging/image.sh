#!/usr/bin/env bash
# Build the Dockerfile's image with podman. The base image is not pulled: it is made with debootstrap and tagged
# debian:bookworm-slim. Needs root, podman, runc, debootstrap and 5 GB of disk, which later builds reuse.
#
#   packaging/image.sh [OUT]
#
# OUT is build/package/dist.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=packaging/bookworm.sh
. packaging/bookworm.sh

out=$(realpath -m "${1:-build/package/dist}")
version=$(sed -n 's/^project(roofline VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
rfl_make_debian
podman image exists debian:bookworm-slim || tar -C build/package/debian -c . | podman import -q - debian:bookworm-slim
podman build --isolation chroot --pull=never -t "roofline:$version" .
mkdir -p "$out"
rm -f "$out/roofline-$version-image.tar"
podman save -q --format oci-archive -o "$out/roofline-$version-image.tar" "roofline:$version"
ls -l "$out/roofline-$version-image.tar"
