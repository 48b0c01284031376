#!/bin/sh
# Words that do not read as English in sources and documents, with what to write instead. Each is a
# slip that this project made often; a line that needs one is worded differently.
#
# usage: check_language.sh [ROOT]; exit 0 when clean, 1 with one line per finding.
set -u
cd "${1:-$(dirname "$0")/..}" || exit 2

# extended regular expression (whole words, any case) = what to write
words='
behind=after, past
tells?=report, say, print
told=reported
cures?=fix, remedy
nobody=no one, or turn the sentence
made[- ]up=synthetic
whoever=the caller, whichever, any
somebody=someone, another program
is no (name|number|option|file|folder|ledger|model|word|matrix|environment) of=is not a valid
what of (a|the|it)=the parts that
(goes|go) on=continues
stands? (in|behind|for itself)=is
bears?=has, carries
brought to ours=normalised
put into words=described
words are=values are
looked at=checked
'
# where these are good English
fine='(left?|leaves?|leaving) .*behind|tells? .*(apart|from)|tell (a|an|one|where|which)|(goes|go) on (the|one|a) |stand in for'
files=$(git ls-files -- '*.c' '*.h' '*.cpp' '*.hpp' '*.inc' '*.md' ':!tests/data' ':!tests/fuzz/corpus' \
	':!CHANGELOG.md' ':!tests/check_language.sh' 2>/dev/null)
[ -n "$files" ] || { echo "no git repository here: nothing was checked" >&2; exit 77; }
bad=0
IFS='
'
for entry in $words; do
	# shellcheck disable=SC2086 # one file per line
	found=$(grep -nwiE -e "${entry%%=*}" -- $files | grep -viE "$fine")
	if [ -n "$found" ]; then
		printf '%s\n' "$found" | sed "s/\$/   <- ${entry#*=}/"
		bad=1
	fi
done
exit "$bad"
