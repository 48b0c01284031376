#!/usr/bin/env bash
# Make the Debian packages 'roofline' and 'roofline-engine-torch' for the Debian that this runs on. Installs what
# the build needs, and runs lintian.
#
#   packaging/deb.sh [OUT]
#
# OUT is build/package/dist. The date of all files is SOURCE_DATE_EPOCH, by default the last commit's.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=cmake/packages.sh
. cmake/packages.sh

work=$PWD/build/package/deb
out=$(realpath -m "${1:-build/package/dist}")
source=$work/roofline
version=$(sed -n 's/^project(roofline VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC DEB_BUILD_OPTIONS=noautodbgsym
rfl_install_packages "${RFL_PACKAGES[@]}" debhelper dpkg-dev lintian

rm -rf "$work"
mkdir -p "$source" "$out"
tar -c --exclude-vcs --exclude=./build --exclude=./results . | tar -x -C "$source"
cd "$source"
mv packaging/debian .
depends=$(printf '%s, ' "${RFL_PACKAGES[@]}" | sed 's/build-essential, //; s/, git,/,/; s/, $//')
sed "s/@BUILD_DEPENDS@/$depends/" debian/control.in >debian/control
printf 'roofline (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "$version" \
  "$(sed -n 's/^Maintainer: //p' debian/control)" "$(date -R -d "@$SOURCE_DATE_EPOCH")" >debian/changelog
dpkg-buildpackage -us -uc -b >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log" >&2; exit 1; }
lintian --fail-on error "$work"/*.changes
rm -f "$out"/roofline{,-engine-torch}_*.deb
cp "$work"/*.deb "$out"
ls -l "$out"/*.deb
