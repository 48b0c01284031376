#!/bin/sh
# Links of the pages to files of this tree and to headings of pages must have their targets.
#
# usage: check_links.sh [ROOT]; exit 0 when clean, 1 with one line per finding.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

findings=$(find . -name '*.md' \( -path './docs/*' -o -path './tests/*' -o ! -path './*/*' \) |
	sed 's,^\./,,' | xargs awk '
	FNR == 1 { fenced = 0; nheads = 0 }
	/^```/ { fenced = !fenced }
	fenced { next }
	/^#+ / { # the anchor that GitHub and others make of a heading
		anchor = tolower($0)
		sub(/^#+ /, "", anchor)
		gsub(/[^a-z0-9_ -]/, "", anchor)
		gsub(/ /, "-", anchor)
		if ((FILENAME, anchor) in heads)
			print FILENAME ": two headings with the anchor #" anchor
		heads[FILENAME, anchor] = 1
	}
	{
		text = $0
		while (match(text, /\]\([^() ]+\)/)) {
			link[++n] = substr(text, RSTART + 2, RLENGTH - 3)
			from[n] = FILENAME
			line[n] = FNR
			text = substr(text, RSTART + RLENGTH)
		}
	}
	END {
		for (i = 1; i <= n; i++) {
			if (link[i] ~ /^[a-z]+:/)
				continue
			path = link[i]
			sub(/#.*/, "", path)
			folder = from[i]
			sub(/[^\/]*$/, "", folder)
			target = path == "" ? from[i] : folder path
			while (sub(/[^\/.]+\/\.\.\//, "", target))
				;
			if (system("test -e \"" target "\"") != 0)
				print from[i] ":" line[i] ": no file " link[i]
			else if (link[i] ~ /#/ && target ~ /\.md$/) {
				anchor = link[i]
				sub(/.*#/, "", anchor)
				if (!((target, anchor) in heads))
					print from[i] ":" line[i] ": no heading " link[i]
			}
		}
	}')
[ -z "$findings" ] && exit 0
printf '%s\n' "$findings" >&2
exit 1
