#!/bin/sh
# Commands that the pages mention in their text, in tables and in blocks exist, and so do their options.
# (docs/record executes those that a reader types.)
#
#   typed.sh ROOFLINE PAGE...
set -u
roofline=$1
shift
scratch=$(mktemp -d "${TMPDIR:-/tmp}/roofline-typed.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# One line for each: page:line:command. A command ends at a pipe, a redirection or a comment.
awk 'FNR == 1 { fenced = 0 }
	/^ *```/ { fenced = !fenced; next }
	{
		at = FILENAME ":" FNR ":"
		if (fenced || /^    /) {
			if (match($0, /^ *(\$ )?roofline /))
				print at substr($0, index($0, "roofline "))
			next
		}
		text = $0
		while (match(text, /`roofline [^`]*`/)) {
			print at substr(text, RSTART + 1, RLENGTH - 2)
			text = substr(text, RSTART + RLENGTH)
		}
	}' "$@" | sed 's/ *[|>#<;&].*//' >"$scratch/found"

failed=0
checked=0
while IFS=: read -r page line command; do
	# a message, the head of a checkpoint, and the hidden option that writes docs/reference/commands.md
	case $command in *': '* | 'roofline checkpoint 1' | 'roofline help --markdown') continue ;; esac
	words=$(echo "$command" | sed -E 's/^roofline //; s/(^| )(-|[A-Z"{~.\/$]|[a-z_0-9]*[.\/]).*//')
	# "matrix run" is a command, "counters" a group of them, "peaks.json" an operand
	help=
	while [ -n "$words" ]; do
		help=$scratch/$(echo "$words" | tr ' ' _)
		# shellcheck disable=SC2086 # the words of a command
		[ -e "$help" ] || "$roofline" $words --help all >"$help" 2>/dev/null || : >"$help"
		[ ! -s "$help" ] || break
		case $words in *' '*) words=${words% *} ;; *) words= ;; esac
	done
	if [ -z "$words" ]; then
		case $command in 'roofline '-* | 'roofline '[A-Z.]* | roofline) continue ;; esac
		echo "$page:$line: $command: no such command" >&2
		failed=1
		continue
	fi
	checked=$((checked + 1))
	for option in $(echo " ${command%% -- *}" | grep -o -e ' --[a-z][a-z-]*'); do
		grep -q -w -e "$option" "$help" || [ "$option" = --help ] || [ "$option" = --version ] || {
			echo "$page:$line: $command: no option $option" >&2
			failed=1
		}
	done
done <"$scratch/found"
[ "$checked" -gt 100 ] || { echo "only $checked commands found: the pattern is wrong" >&2; exit 1; }
exit $failed
