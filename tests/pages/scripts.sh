#!/bin/sh
# quickstart and runtests: help and mistyped options do nothing else.
#
#   scripts.sh SOURCE
set -u
cd "$1" || exit 1
for script in quickstart runtests; do
	./$script --help >/dev/null || { echo "$script --help: exit $?" >&2; exit 1; }
	out=$(./$script --hlep 2>&1)
	code=$?
	[ $code -eq 2 ] && [ "$out" = "$script: unknown option '--hlep'; see ./$script --help" ] ||
		{ echo "$script --hlep: exit $code: $out" >&2; exit 1; }
done
