#!/bin/sh
# The language of documents, help, messages and comments: words that do not read as English or are
# not the field's, with what to write instead, and how often phrases may occur that make prose
# foreign. Each is a slip that this project made often.
#
# usage: check_language.sh [ROOT]; exit 0 when clean, 1 with one line per finding.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}" || exit 2
text=$(mktemp "${TMPDIR:-/tmp}/rfl-language-XXXXXX") || exit 2
trap 'rm -f "$text"' EXIT

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
is no (name|number|option|file|directory|ledger|model|word|matrix|environment) of=is not a valid
what of (a|the|it)=the parts that
(goes|go) on=continues
stands? (in|behind|for itself)=is
bears?=has, carries
brought to ours=normalised
put into words=described
words are=values are
looked at=checked
(sub)?folders?=directory
knees?=ridge point
attain(s|ed)?=achieve
matrix products?=GEMM, matmul
matrix units?=Tensor Core, matrix core; for AMX and SME, their names
least times?=minimum time
trainings=training runs
forms? of attention=attention implementation
other counters?=FLOP-counting tool
golden (files?|values?|data|results)=reference files, reference values
processors?=CPU
'
# where these are good English, or the name of a key, a file or a product
fine='(left?|leaves?|leaving) .*behind|tells? .*(apart|from)|tell (a|an|one|where|which)|(goes|go) on (the|one|a) |stand in for'
fine="$fine|folder/<run_id>|folder\\.c|[\`/\"]folder|host folder|@param folder|knee(-|%s|_|\"|\`)|\"knee|\`knee|-Core Processor|(R\\) |[./\`\"])processor|:A processor(,|\$)"

# phrase : uses allowed in 10,000 words of pages : of sources (three times what the manual of git has
# would be 0.2, 1.2, 0.6, 0, 0.2, 0.8, 2.1 and 0.9)
phrases='
those of:0.5:1.2
that of:1.2:1.2
(are those|is that|is those) of:0.6:0.6
says so:0:0
says? (what|how|why):0.5:0.5
left out:0.8:2
names it:0.5:0.5
of (its|their) own:0.9:1.5
'

list()
{
	if git ls-files --error-unmatch . >/dev/null 2>&1; then
		git ls-files -- "$@" ':!tests/data' ':!tests/fuzz/corpus' ':!CHANGELOG.md'
	else # a tree without a repository
		for name; do find . -name "$name" -type f | sed 's|^\./||'; done
	fi
}

sources=$(list '*.c' '*.h' '*.cpp' '*.hpp' '*.inc')
pages=$(list '*.md')
[ -n "$sources$pages" ] || { echo "nothing to check" >&2; exit 2; }
bad=0
IFS='
'
{
	# shellcheck disable=SC2086 # one file per line
	awk -f "$here/prose.awk" $sources </dev/null
	# shellcheck disable=SC2086
	[ -z "$pages" ] || grep -n '' /dev/null $pages
} >"$text"
for entry in $words; do
	found=$(grep -iE "^[^:]*:[0-9]+:(.*[^A-Za-z0-9_])?(${entry%%=*})([^A-Za-z0-9_]|\$)" "$text" | grep -viE "$fine")
	if [ -n "$found" ]; then
		printf '%s\n' "$found" | sed "s/^\([^:]*:[0-9]*:\) */\1 /; s|\$|   <- ${entry#*=}|"
		bad=1
	fi
done

# often NAME FIELD: hold the phrases of $text to their limits
often()
{
	tr -s '\n\t *' ' ' <"$text" >"$text.words"
	mv "$text.words" "$text"
	total=$(wc -w <"$text")
	[ "$total" -ge 10000 ] || return 0
	for entry in $phrases; do
		phrase=${entry%%:*} limit=$(printf '%s' "$entry" | cut -d: -f"$2")
		n=$(grep -oiE "\\b($phrase)\\b" "$text" | wc -l)
		awk -v n="$n" -v w="$total" -v l="$limit" 'BEGIN { exit n * 10000 / w > l }' || {
			echo "$1: '$phrase' occurs $n times in $total words; the limit is $limit in 10,000"
			bad=1
		}
	done
}

sources=$(printf '%s\n' "$sources" | grep -v '^tests/')
# shellcheck disable=SC2086
awk -v together=1 -f "$here/prose.awk" $sources </dev/null >"$text"
often sources 3
# shellcheck disable=SC2086
cat /dev/null $pages >"$text"
often pages 2
exit "$bad"
