#!/bin/sh
# What stands under a "$ command" in a ```console block of a page must be what the command prints.
#   check_page.sh [--update] ROOFLINE PAGE
set -u
update=
[ "$1" = --update ] && update=1 && shift
roofline=$(realpath "$1") page=$(realpath "$2")
PATH=$(dirname "$roofline"):$PATH
LC_ALL=C
export PATH LC_ALL
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
awk '
	/^```console$/ { print; console = 1; next }
	/^```$/ { console = 0 }
	console && /^\$ / { print; fflush(); system(substr($0, 3)); next }
	!console { print }
' "$page" >"$scratch/page"
if [ -n "$update" ]; then
	cat "$scratch/page" >"$page"
	exit
fi
diff -u "$page" "$scratch/page" && exit 0
echo "$page is not up to date: cmake --build <build> --target cli-update" >&2
exit 1
