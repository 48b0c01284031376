#!/bin/sh
# The manual pages are whole: one per command of the overview, readable by man and man -k.
#   check_man.sh ROOFLINE
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" help --man "$dir/man1"
pages=$(find "$dir/man1" -name '*.1' | wc -l)
commands=$("$1" help --markdown | grep -c '^## roofline ')
[ "$pages" -eq $((commands + 1)) ] || { echo "$pages pages for $commands commands" >&2; exit 1; }
if ! command -v lexgrog >/dev/null || ! command -v groff >/dev/null; then
	echo "no lexgrog and groff (man-db): the form of the pages was not checked" >&2
	exit 77
fi
lexgrog "$dir"/man1/*.1 >/dev/null || { echo "a NAME section that 'man -k' cannot read" >&2; exit 1; }
for page in "$dir"/man1/*.1; do
	warnings=$(groff -man -ww -z "$page" 2>&1)
	[ -z "$warnings" ] || { echo "$page: $warnings" >&2; exit 1; }
done
