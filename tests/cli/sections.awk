# The sections of a case; README.md has the format.
#
#   awk -v base=BASE -f sections.awk CASE      splits it: BASE.sh and, as far as they are there,
#                                              BASE.exit, BASE.stdout[.glob] and BASE.stderr[.glob]
#   awk -v escape=1 -f sections.awk FILE       prints a file as the body of a section

BEGIN {
	marker = "--- ((stdout|stderr)( glob)?|exit [0-9]+|no newline)$"
	if (!escape)
		begin("sh")
}

# A line is held until it is known whether a newline follows.
function finish(newline) {
	if (held)
		printf "%s%s", line, newline >out
	held = 0
}

function begin(suffix) {
	out = base "." suffix
	sub(/\.glob$/, "", suffix)
	if (seen[suffix]++)
		refuse("a second section of this kind")
	printf "" >out
	closed = 0
}

function refuse(why) {
	print FILENAME ":" FNR ": " why >"/dev/stderr"
	exit 2
}

escape {
	print ($0 ~ ("^\\\\*" marker) ? "\\" : "") $0
	next
}

$0 ~ ("^" marker) {
	if ($2 == "no") {
		finish("")
		closed = 1
		next
	}
	finish("\n")
	begin($2 ($3 == "glob" ? ".glob" : ""))
	if ($2 == "exit") {
		print $3 >out
		closed = 1
	}
	next
}

closed { refuse("only a section may follow here") }

{
	finish("\n")
	line = $0 ~ ("^\\\\+" marker) ? substr($0, 2) : $0
	held = 1
}

END { finish("\n") }
